// The config.json of a model, from Hugging Face: asked for on a click alone; the page's policy names no other host.
const HUB = "https://huggingface.co";
const NAME = /^[\w.-]+(\/[\w.-]+)?$/;
const REFUSALS = {
  401: "is gated, or not there: download its config.json and drop it here",
  403: "is gated: download its config.json and drop it here",
  404: "has no config.json there",
};

/** @param {string} name @returns {Promise<string>} */
async function fromHub(name) {
  if (!NAME.test(name)) throw new Error("a name is org/name");
  const options = { credentials: "omit", referrerPolicy: "no-referrer" };
  const answer = await fetch(`${HUB}/${name}/resolve/main/config.json`, options).catch(() => {
    throw new Error("huggingface.co cannot be reached");
  });
  if (!answer.ok) throw new Error(`${name} ${REFUSALS[answer.status] ?? `cannot be fetched (${answer.status})`}`);
  const text = await answer.text();
  if (!("model_type" in JSON.parse(text))) throw new Error(`the config.json of ${name} names no model_type`);
  return text;
}
