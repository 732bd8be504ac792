// The page: questions to Python in three workers (for each key, for pauses, for the cards), answers into the page.
const PAUSE = 400;
/** What takes seconds waits for a longer one. */
const REST = 2000;
const DATA = JSON.parse(at("data").textContent);
const workers = {};
const shown = {};
let version = 0;
let timers = [];
let source = null;
/** What the buttons of the last answers do. */
let options = {}, kinds = {}, cards = [], picture = DATA.first.quick.picture;
let optionsVersion = 0;

// What is unfolded stays unfolded.
function show(id, html) {
  const box = at(id);
  if (shown[id] !== html) {
    const open = [...box.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent);
    box.innerHTML = shown[id] = html;
    for (const summary of box.querySelectorAll("details > summary")) {
      if (open.includes(summary.textContent)) summary.parentElement.open = true;
    }
  }
  box.classList.remove("stale");
}

const ANSWERS = {
  quick(answer) {
    if (answer.stated) take(answer.stated);
    at("error").innerHTML = answer.error || "";
    at("quick").classList.toggle("stale", Boolean(answer.error));
    if (answer.fields && !Object.keys(pending).length) setFields(answer.fields);
    if (answer.memory !== undefined) show("memory", answer.memory);
  },
  full(answer) {
    show("options", answer.options);
    show("full", answer.html);
    options = answer.ways;
    optionsVersion = version;
  },
  others: (answer) => ANSWERS.full(answer),
  reserved(answer) {
    if (answer.memory !== undefined) show("memory", answer.memory);
  },
  matrix(answer) {
    show("cards", answer.html);
    cards = answer.cards;
  },
  draft(answer) {
    at("error").innerHTML = answer.error || "";
    if (answer.files) fromNew(answer.files);
    else waysDue = false;
  },
  ways: (answer) => newWays(answer, untouched()),
};

function answered(data) {
  if (data.failed) at("error").textContent = data.failed;
  const { what, answer } = data;
  if (!what || !answer) return;
  // While a slider moves, the last verdict is better than none.
  const slides = what === "quick" && Object.keys(pending).length;
  if (data.version !== (what === "ways" ? menus : version) && !slides) return;
  ANSWERS[what](answer);
  if (answer.top !== undefined) {
    if (data.version === version) picture = answer.picture;
    show("quick", answer.top);
    at("mini").textContent = answer.picture.headline;
    at("mini").className = `verdict ${answer.picture.role}`;
  }
  if (answer.verdict) document.title = `${answer.verdict.replaceAll("-", " ")}: advisor`;
  document.body.dataset[what] = data.version;
}

function heard(data) {
  if (data.progress !== undefined) at("progress").value = data.progress;
  if (data.ready) {
    at("progress").hidden = true;
    document.body.dataset.ready = "true";
    workers.slow = new Python(source, answered);
    // Cards take longest: their worker starts last.
    workers.slow.worker.addEventListener("message", startCards);
    if (waysDue) fromMenus();
    else changed();
    later();
  }
  answered(data);
}

function startCards({ data }) {
  if (data.what !== "others" || workers.cards) return;
  workers.cards = new Python(source, answered);
  atRest();
}

function changed() {
  document.body.dataset.version = version += 1;
  for (const id of ["options", "full", "cards"]) at(id).classList.add("stale");
  for (const name of ["slow", "cards"]) workers[name]?.forget();
  workers.quick?.ask("quick", version, request());
  timers.forEach(clearTimeout);
  timers = [setTimeout(later, PAUSE), setTimeout(keepLink, PAUSE), setTimeout(atRest, REST)];
}

function later() {
  if (!workers.slow) return;
  const asked = request();
  if (waysDue && untouched()) {
    waysDue = false;
    workers.slow.ask("ways", menus, wanted());
  }
  for (const what of ["full", "others"]) workers.slow.ask(what, version, asked);
}

function atRest() {
  workers.slow?.ask("reserved", version, request());
  workers.cards?.ask("matrix", version, request());
}

async function begin() {
  if (await fromLink()) {
    optionsVersion = -1;
    for (const id of ["options", "memory", "full"]) show(id, "");
    show("quick", '<div class="verdict unknown"><p><b>Starting Python ...</b></p><p>It takes some seconds.</p></div>');
  } else {
    for (const what of ["quick", "full"]) answered({ what, version, answer: DATA.first[what] });
  }
  showTokens();
  listen();
  // Where the verdict is out of sight, a line of it stays.
  new IntersectionObserver(([{ isIntersecting }]) => { at("mini").hidden = isIntersecting; }).observe(at("quick"));
  source = await workerSource();
  workers.quick = new Python(source, heard);
}

begin().catch((error) => { at("error").textContent = String(error); });
