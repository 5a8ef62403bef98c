/** The waiting room in front of a shop's own checkout: the page of the sale, without its basket. */

import "./sale.js";
