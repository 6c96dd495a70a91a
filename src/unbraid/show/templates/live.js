// What a reader moves, and what is drawn then. Uses makeDecoder of decoder.js.
async function live(data) {
  const section = document.getElementById("live"), [height, width, channels] = data.shape;
  const decoders = await Promise.all(data.models.map((model) => model.program && makeDecoder(model.program)));
  const inputs = [...section.querySelectorAll("[data-slider]")].sort((a, b) => a.dataset.slider - b.dataset.slider);
  const views = [...section.querySelectorAll("[data-view]")];
  const seedable = decoders.every(Boolean) ? data.models[0].codes.length : data.strips.rows;
  const places = inputs.map(() => 0); // of the sliders, 0 to 1
  const codes = data.models.map(() => []); // of the image that each model shows
  let seed = 0, moved = null, due = false;

  const clip = (x) => Math.min(1, Math.max(0, x));
  const nearest = (values, to) => values.reduce((best, each) => (Math.abs(each - to) < Math.abs(best - to) ? each : best));
  function value(move, place) {
    const to = move.low + (move.high - move.low) * place;
    return move.values ? nearest(move.values, to) : to; // of a quantized code
  }
  function set(own, move, place) {
    const to = value(move, place);
    if (move.circle) [own[move.codes[0]], own[move.codes[1]]] = [Math.cos(to), Math.sin(to)];
    else own[move.codes[0]] = to;
  }
  function placeOf(own, move) {
    if (!move.circle) return move.high === move.low ? 0 : clip((own[move.codes[0]] - move.low) / (move.high - move.low));
    const turn = (angle(own, move) - move.low) / (move.high - move.low);
    return turn - Math.floor(turn);
  }
  const angle = (own, move) => Math.atan2(own[move.codes[1]], own[move.codes[0]]);
  function said(own, move) {
    if (!move) return "–";
    return move.circle ? `${(Math.round((angle(own, move) * 180) / Math.PI) + 360) % 360}°` : own[move.codes[0]].toFixed(2).replace("-", "−");
  }

  const pixels = new ImageData(width, height);
  function draw(canvas, image) {
    const plane = width * height;
    for (let i = 0; i < plane; i++) {
      for (let c = 0; c < 3; c++) {
        let value = 0;
        for (let k = 0; k < channels; k++) value += data.mixture[k][c] * image[k * plane + i];
        pixels.data[4 * i + c] = 255 * value; // rounded and clamped by its type
      }
      pixels.data[4 * i + 3] = 255;
    }
    canvas.getContext("2d").putImageData(pixels, 0, 0);
  }
  function drawStrip(canvas, model) {
    const index = moved ?? 0, strip = document.querySelector(`[data-strip="${index}"][data-model="${model}"]`);
    if (!strip) return;
    const { steps, gap } = data.strips, circle = data.sliders[index][model].circle;
    const step = Math.min(steps - 1, Math.round(places[index] * (circle ? steps : steps - 1)));
    canvas.getContext("2d").drawImage(strip, step * (width + gap), seed * (height + gap), width, height, 0, 0, width, height);
  }

  function show() {
    due = false;
    const began = performance.now();
    views.forEach((view, model) => {
      const canvas = view.querySelector("canvas");
      if (decoders[model]) draw(canvas, decoders[model](codes[model]));
      else drawStrip(canvas, model);
    });
    const took = performance.now() - began;
    section.dataset.milliseconds = took.toFixed(1);
    pace(took);
  }
  const paces = [];
  let told = 0;
  function pace(took) {
    paces.push(took);
    if (performance.now() - told < 400 || !decoders.some(Boolean)) return;
    told = performance.now();
    const typical = paces.splice(0).sort((a, b) => a - b);
    section.querySelector(".pace").textContent = `${Math.max(1, Math.round(typical[typical.length >> 1]))} ms to draw`;
  }
  function soon() {
    if (!due) { due = true; requestAnimationFrame(show); }
  }

  function tell(index) {
    const text = data.sliders[index].map((move, model) => said(codes[model], move)).join(" / ");
    inputs[index].value = places[index];
    inputs[index].setAttribute("aria-valuetext", text);
    inputs[index].parentElement.querySelector("output").textContent = text;
  }
  function back() {
    moved = null;
    data.models.forEach((model, m) => { codes[m] = [...model.codes[seed]]; });
    inputs.forEach((_, index) => {
      const model = data.sliders[index].findIndex(Boolean);
      places[index] = placeOf(codes[model], data.sliders[index][model]);
      tell(index);
    });
    soon();
  }
  function move(index, place) {
    // Images made beforehand are those of one moved code.
    if (moved !== index && !decoders.every(Boolean)) back();
    moved = index;
    places[index] = place;
    data.sliders[index].forEach((each, model) => each && set(codes[model], each, place));
    tell(index);
    soon();
  }

  let playing = null;
  function play(button) {
    const index = +button.dataset.play, before = playing;
    if (before) { before.button.setAttribute("aria-pressed", "false"); cancelAnimationFrame(before.frame); playing = null; }
    if (before?.button === button) return;
    const circle = data.sliders[index].some((each) => each?.circle), begin = places[index];
    playing = { button, frame: 0 };
    button.setAttribute("aria-pressed", "true");
    let start = null;
    const step = (now) => {
      start ??= now;
      const way = begin + (now - start) / 2500; // seconds for one way, in milliseconds
      move(index, circle ? way % 1 : 1 - Math.abs(1 - (way % 2)));
      playing.frame = requestAnimationFrame(step);
    };
    playing.frame = requestAnimationFrame(step);
  }

  function choices(name, first, chosen) {
    const buttons = [...document.querySelectorAll(`[data-choice="${name}"] [data-seed]`)];
    const pick = (number) => {
      buttons.forEach((button, i) => button.setAttribute("aria-pressed", i === number));
      chosen(number);
    };
    buttons.forEach((button, i) => {
      button.hidden = i >= seedable;
      button.addEventListener("click", () => pick(i));
    });
    pick(Math.min(first, seedable - 1));
  }

  // The first calls are slow, until the browser has compiled them.
  for (let call = 0; call < 4; call++) decoders.forEach((decode, model) => decode?.(data.models[model].codes[0]));
  inputs.forEach((input, index) => input.addEventListener("input", () => move(index, +input.value)));
  for (const button of section.querySelectorAll("[data-play]")) button.addEventListener("click", () => play(button));
  document.getElementById("reset").addEventListener("click", back);
  choices("live", 0, (number) => { seed = number; back(); });
  ready(section);

  const swap = document.getElementById("swap");
  if (!swap) return;
  const ticks = [...swap.querySelectorAll("[data-tick]")], quads = [...swap.querySelectorAll("[data-quad]")];
  const pair = [0, Math.min(1, seedable - 1)];
  function exchange() {
    for (const quad of quads) {
      const model = +quad.dataset.quad, [a, b] = pair.map((number) => data.models[model].codes[number]);
      const [mixedA, mixedB] = [[...a], [...b]];
      for (const tick of ticks) {
        if (!tick.checked) continue;
        for (const code of data.sliders[+tick.dataset.tick][model]?.codes ?? []) [mixedA[code], mixedB[code]] = [b[code], a[code]];
      }
      [a, mixedA, mixedB, b].forEach((each, i) => draw(quad.querySelectorAll("canvas")[i], decoders[model](each)));
    }
  }
  for (const tick of ticks) tick.addEventListener("change", exchange);
  choices("A", 0, (number) => { pair[0] = number; exchange(); });
  choices("B", 1, (number) => { pair[1] = number; exchange(); });
  ready(swap);
}

function ready(section) {
  for (const each of section.querySelectorAll("[disabled]")) each.disabled = false;
  section.dataset.ready = "yes";
}

live(JSON.parse(document.getElementById("live-data").textContent));
