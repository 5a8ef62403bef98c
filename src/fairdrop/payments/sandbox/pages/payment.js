// Pays one intent. The client secret is in the address behind "#", which browsers send to nobody;
// from there it goes into the body of the requests below, and nowhere else.

const ANSWER_WITHIN_MS = 15_000;
const ASK_EVERY_MS = 1_000;
const ASK_AT_MOST = 60;

const DECLINES = {
  card_declined: "The card was declined.",
  insufficient_funds: "The card has insufficient funds.",
};

const main = document.getElementById("payment");
const form = document.getElementById("form");
const button = document.getElementById("pay");
const message = document.getElementById("message");
const back = document.getElementById("back");
const secret = decodeURIComponent(location.hash.slice(1));
const intent = new URL(`../v1/intents/${main.dataset.intent}`, location.href);

let busy = false;

function say(text, kind = "") {
  message.textContent = text;
  message.className = `message ${kind}`;
}

function occupy(value) {
  busy = value;
  if (button) {
    button.disabled = value;
  }
}

async function post(what, body) {
  const answer = await fetch(`${intent.pathname}/${what}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ client_secret: secret, ...body }),
    credentials: "omit",
    cache: "no-store",
    signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
  });
  return { ok: answer.ok, status: answer.status, document: await answer.json() };
}

function finish() {
  form?.remove();
  main.dataset.status = "succeeded";
  if (back) {
    say("Paid. Taking you back to the shop …", "good");
    location.replace(back.href);
  } else {
    say("Paid. You can close this page.", "good");
  }
}

function letTryAgain(text) {
  occupy(false);
  say(text, "bad");
  message.focus();
}

async function follow({ ok, status, document: told }) {
  if (!ok) {
    if (status === 409) {
      form?.remove();
      say("The shop has cancelled this payment. Nothing was charged.", "bad");
    } else if (status === 403) {
      say("This address is not complete. Open the payment from the shop again.", "bad");
    } else {
      letTryAgain("That did not work. Try again: paying twice never charges twice.");
    }
    return;
  }
  if (told.status === "succeeded" || told.status === "requires_capture") {
    finish();
  } else if (told.status === "processing") {
    await wait();
  } else if (told.status === "canceled") {
    form?.remove();
    say("The shop has cancelled this payment. Nothing was charged.", "bad");
  } else {
    const reason = DECLINES[told.decline_code] ?? "The payment was declined.";
    letTryAgain(`${reason} Nothing was charged. Choose another card.`);
  }
}

async function wait() {
  occupy(true);
  main.dataset.status = "processing";
  say("Your bank is thinking. Please wait …");
  for (let asked = 0; asked < ASK_AT_MOST; asked += 1) {
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
    try {
      const answer = await post("status", {});
      if (!answer.ok || answer.document.status !== "processing") {
        await follow(answer);
        return;
      }
    } catch {
      // The next question may be answered.
    }
  }
  say("Your bank still has not answered. You can go back to the shop: your order will follow by itself.");
}

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (busy) {
    return;
  }
  occupy(true);
  say("Paying …");
  try {
    await follow(await post("pay", { card: new FormData(form).get("card") }));
  } catch {
    letTryAgain("No answer. Try again: paying twice never charges twice.");
  }
});

// A page that the browser kept and shows again ("back") may be out of date.
addEventListener("pageshow", (event) => {
  if (event.persisted) {
    location.reload();
  }
});

if (form && !secret) {
  occupy(true);
  say("This address is not complete. Open the payment from the shop again.", "bad");
} else if (main.dataset.status === "processing") {
  wait();
}
