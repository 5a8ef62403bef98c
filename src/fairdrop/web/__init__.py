"""Everything over HTTP: the data plane for buyers, the control plane for operators, the pages."""
