// The explorer of a programme: shows what the files beside it hold, and fetches nothing else.
"use strict";
(() => {
const Z95 = 1.959964, SHOWN = 20, FALSE_DISCOVERIES = 0.05, MONTH = 4;
const LARGEST = {"tap-ons": "The busiest place", trips: "The busiest place", "km/h": "The fastest place"};
const $ = (id) => document.getElementById(id);
const state = {view: "place", week: 0, place: 0, other: -1, day: -1, span: 1, slot: "", mode: "", all: false};
const arrived = new Map(), waiting = new Map();
let about, shown = {name: "", head: [], rows: []}, drawing = 0;

// Files: each hands over one value under its own name.
window.turnstile = (path, value) => {
  arrived.set(path, value);
  if (path === "explore/index.js") begin(value);
  else waiting.get(path)?.(value);
};
function file(path) {
  if (arrived.has(path)) return Promise.resolve(arrived.get(path));
  return new Promise((found, failed) => {
    waiting.set(path, found);
    const script = document.createElement("script");
    script.src = path;
    script.onerror = () => failed(new Error(`${path} is not there`));
    document.head.append(script);
  });
}
const named = (week) => { const [, period, revision] = about.weeks[week].release.split("/"); return `${period}-${revision}`; };
const weekFile = (week) => file(`explore/weeks/${named(week)}.js`);
const placeFile = (place) => file(`explore/places/${place}.js`);
async function hoursOf(week, place) {
  const record = await weekFile(week), at = cellAt(record, place);
  if (at < 0 || !record.blocks) return null;
  const size = about.places_a_file;
  const block = await file(`explore/days/${named(week)}-${Math.floor(at / size)}.js`);
  return {days: record.days, slots: record.slots, gaps: record.gaps, terms: record.terms, hours: block.hours[at % size]};
}
function cellAt(record, place) {
  record.at ??= new Map(record.places.map((cell, n) => [cell.slice(0, 2).join("\n"), n]));
  return record.at.get(about.places[place].slice(0, 2).join("\n")) ?? -1;
}

// Words and numbers.
const nameOf = (place) => { const [mode, label] = about.places[place]; return mode && modes().length > 1 ? `${label} (${mode.replace("_", " ")})` : label; };
const modes = () => [...new Set(about.places.map(([mode]) => mode))];
const isNumber = (one) => typeof one === "number";
const least = (one) => about.is_count ? Math.max(0, one) : one;
function figure(number) {
  const digits = about.is_count || Math.abs(number) >= 100 ? 0 : 1;
  return number.toLocaleString("en", {maximumFractionDigits: digits, minimumFractionDigits: digits});
}
const signed = (number) => (number > 0 ? "+" : "") + figure(number).replace("-", "−");
function words(number) {
  if (!number || !isNumber(number[0])) return "no number: too little is known";
  const [value, low, high, isUnbiased] = number, unit = ` ${about.unit}`;
  if (!isNumber(low)) return `about ${figure(least(value))}${unit}, without an interval`;
  return `about ${figure(least(value))}${unit} (${figure(least(low))} to ${figure(least(high))}${isUnbiased ? ", unbiased" : ""})`;
}
function list(names) {
  if (names.length < 2) return names[0] ?? "";
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
const deviation = (number) => number && isNumber(number[2]) ? Math.max(number[2] - number[0], 1e-9) / Z95 : Infinity;
const ends = ([value, error]) => [value, value - Z95 * error, value + Z95 * error];
const minus = (one, other) => [one[0] - other[0], Math.hypot(one[1], other[1])];

// Statistics: chance above a deviate (erfc of Numerical Recipes), and its inverse by halving.
function above(z) {
  const x = Math.abs(z) / Math.SQRT2, t = 1 / (1 + 0.5 * x);
  const p = [1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277];
  const tail = t * Math.exp(-x * x - 1.26551223 + p.reduceRight((sum, one) => t * (one + sum), 0)) / 2;
  return z >= 0 ? tail : 1 - tail;
}
function deviate(chance) {
  let low = 0, high = 40;
  for (let n = 0; n < 80; n++) { const middle = (low + high) / 2; if (above(middle) > chance) low = middle; else high = middle; }
  return low;
}
// Ranks of which each holds in 95 of 100: places are told apart where all differences are in doubt together.
function ranked(entries) {
  const sorted = entries.filter((one) => isNumber(one.number?.[0])).sort((one, other) => other.number[0] - one.number[0]);
  const most = deviate(0.05 / (2 * Math.max(1, sorted.length - 1)));
  const errors = sorted.map((one) => deviation(one.number));
  sorted.forEach((one, n) => {
    let larger = 0, smaller = 0;
    sorted.forEach((other, m) => {
      const apart = (other.number[0] - one.number[0]) / Math.hypot(errors[n], errors[m]);
      if (apart > most) larger++; else if (-apart > most) smaller++;
    });
    Object.assign(one, {rank: n + 1, first: larger + 1, last: sorted.length - smaller});
  });
  return sorted;
}
// False discoveries at 5 % (Benjamini and Hochberg 1995).
function discoveries(tested) {
  const sorted = [...tested].sort((one, other) => one.chance - other.chance);
  let last = 0;
  sorted.forEach((one, n) => { if (one.chance <= FALSE_DISCOVERIES * (n + 1) / sorted.length) last = n + 1; });
  return sorted.slice(0, last);
}

// The page begins: controls are filled, the address says what is shown.
function begin(index) {
  about = index;
  $("week").append(...about.weeks.map((one, n) => new Option(one.period, n)).reverse());
  $("names").append(...about.places.map((_, n) => { const option = document.createElement("option"); option.value = nameOf(n); return option; }));
  $("slot").append(...about.slots.map((slot) => new Option(slot, slot)));
  $("mode").append(...modes().filter(Boolean).map((mode) => new Option(mode.replace("_", " "), mode)));
  $("mode").parentElement.hidden = modes().length < 2;
  if (about.is_count && about.weeks.length >= MONTH) $("span").append(new Option(`the ${MONTH} periods up to it`, MONTH));
  $("span").parentElement.hidden = $("span").options.length < 2;
  state.week = about.weeks.length - 1;
  listen();
  weekFile(state.week).then((record) => {
    const order = ranked(record.places.map((_, n) => ({n, number: record.week[n]})));
    const first = order.length ? record.places[order[0].n] : about.places[0];
    state.place = about.places.findIndex(([mode, label]) => mode === first[0] && label === first[1]);
    fromAddress();
    show();
  });
}
function listen() {
  document.querySelectorAll("[data-view]").forEach((button) => { button.onclick = () => go({view: button.dataset.view}); });
  $("week").onchange = () => go({week: Number($("week").value)});
  $("earlier").onclick = () => go({week: Math.max(0, state.week - 1)});
  $("later").onclick = () => go({week: Math.min(about.weeks.length - 1, state.week + 1)});
  for (const [id, key] of [["name", "place"], ["other", "other"]]) {
    const choose = (event) => {
      const found = placeNamed($(id).value, event.type === "change");
      if (found >= 0) go({[key]: found}); else if (key === "other" && !$(id).value) go({other: -1});
      else if (event.type === "change") $(id).value = state[key] >= 0 ? nameOf(state[key]) : "";
    };
    $(id).oninput = choose;
    $(id).onchange = choose;
    $(id).onfocus = $(id).onclick = () => $(id).select();
  }
  $("span").onchange = () => go({span: Number($("span").value)});
  $("slot").onchange = () => go({slot: $("slot").value});
  $("mode").onchange = () => go({mode: $("mode").value});
  $("all").onclick = () => go({all: !state.all});
  $("closer").onclick = () => zoom(1 / 1.6);
  $("farther").onclick = () => zoom(1.6);
  $("download").onclick = download;
  $("hours-numbers").ontoggle = show;
  $("map").onkeydown = (event) => {
    const towards = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
    if (towards) { event.preventDefault(); const next = nextPlace(towards); if (next >= 0) go({place: next}); }
  };
  window.onhashchange = () => { fromAddress(); show(); };
  let width = innerWidth;
  window.onresize = () => { if (innerWidth !== width) { width = innerWidth; show(); } };
}
function placeNamed(text, isWhole) {
  const asked = text.trim().toLowerCase(), all = about.places.map((_, n) => nameOf(n).toLowerCase());
  const same = all.indexOf(asked);
  return same >= 0 || !isWhole || !asked ? same : all.findIndex((one) => one.includes(asked));
}
function go(change) {
  Object.assign(state, change);
  const said = new URLSearchParams({view: state.view, period: about.weeks[state.week].period, place: nameOf(state.place)});
  if (state.other >= 0) said.set("other", nameOf(state.other));
  for (const key of ["slot", "mode"]) if (state[key]) said.set(key, state[key]);
  if (state.span > 1) said.set("span", state.span);
  if (state.day >= 0) said.set("day", state.day);
  history.replaceState(null, "", `#${said}`);
  show();
}
function fromAddress() {
  const said = new URLSearchParams(location.hash.slice(1));
  const week = about.weeks.findIndex((one) => one.period === said.get("period")), place = placeNamed(said.get("place") ?? "", true);
  if (week >= 0) state.week = week;
  if (place >= 0) state.place = place;
  state.other = placeNamed(said.get("other") ?? "", true);
  state.day = Number(said.get("day") ?? -1);
  if (["place", "places", "changes"].includes(said.get("view"))) state.view = said.get("view");
  state.slot = about.slots.includes(said.get("slot")) ? said.get("slot") : "";
  state.mode = modes().includes(said.get("mode")) ? said.get("mode") : "";
  state.span = said.get("span") === String(MONTH) && $("span").options.length > 1 ? MONTH : 1;
}
async function show() {
  const turn = ++drawing;
  for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-pressed", button.dataset.view === state.view);
  for (const id of ["place", "places", "changes"]) $(id).hidden = id !== state.view;
  $("week").value = state.week;
  $("earlier").disabled = state.week === 0;
  $("later").disabled = state.week === about.weeks.length - 1;
  if (document.activeElement !== $("name")) $("name").value = nameOf(state.place);
  if (document.activeElement !== $("other")) $("other").value = state.other >= 0 ? nameOf(state.other) : "";
  for (const id of ["slot", "mode", "span"]) $(id).value = state[id];
  try {
    const draw = await {place: placeView, places: placesView, changes: changesView}[state.view]();
    if (turn === drawing) { draw(); performance.mark("shown"); }
  } catch (error) {
    if (turn === drawing) said($({place: "summary", places: "ranked", changes: "changed"}[state.view]), [error.message]);
  }
}
function said(element, sentences) {
  element.replaceChildren(...sentences.filter(Boolean).map((text) => make("p", {}, text)));
}
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
function drawn(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// A place: its weeks, its day by hour against the same weekday before, its rank, another beside it.
async function placeView() {
  const {place, other, week} = state;
  const [own, record, two] = await Promise.all([placeFile(place), weekFile(week), other >= 0 ? placeFile(other) : null]);
  const before = weekBefore(week), earlier = before >= 0 ? await weekFile(before) : null;
  const day = state.day >= 0 && state.day < record.days.length ? state.day : 0;
  const hours = await dayHours(place, week, day, before);
  const beside = other >= 0 ? await dayHours(other, week, day, -1) : null;
  return () => {
    const entries = ranked(record.places.map((cell, n) => ({cell, n, number: record.week[n]})));
    const at = cellAt(record, place), mine = entries.find((one) => one.n === at);
    said($("summary"), [
      `${nameOf(place)}, ${about.weeks[week].period}: ${words(record.week[at])}${mine ? `; ${rankWords(mine, entries.length)}` : ""}.`,
      changeWords(record, earlier, place, before),
      weekendWords(record, at),
      other >= 0 ? compareWords(record, place, other) : "",
    ]);
    const points = (found) => { const all = about.weeks.map(() => null); for (const [n, number] of found.weeks) all[n] = number; return all; };
    const series = [{name: nameOf(place), points: points(own)}];
    if (two) series.push({name: nameOf(other), points: points(two)});
    $("weeks-title").textContent = `${capital(about.what)} of each period`;
    chart($("weeks"), about.weeks.map((one) => one.period), series, state.week, (n) => go({week: n}));
    $("hours-part").hidden = !hours;
    shown = {name: nameOf(place), head: ["of", "place", "at", about.unit, "low_95", "high_95"], rows: []};
    for (const each of series) about.weeks.forEach((one, n) => shown.rows.push(["period", each.name, one.period, ...threeOf(each.points[n])]));
    if (hours) hoursShown(hours, beside, record, day);
    drawMap(record);
  };
}
const capital = (text) => text[0].toUpperCase() + text.slice(1);
const threeOf = (number) => [0, 1, 2].map((n) => number && isNumber(number[n]) ? number[n] : "");
const columns = (name) => [name, `${name} low_95`, `${name} high_95`];
function weekBefore(week) {
  const periods = about.periods, at = periods.findIndex((one) => one.period === about.weeks[week].period);
  return at > 0 ? about.weeks.findIndex((one) => one.period === periods[at - 1].period) : -1;
}
function rankWords(one, number) {
  const sure = one.first === one.last ? "told apart from all others" : `between ${one.first} and ${one.last} with certainty of 95 %`;
  return `rank ${one.rank} of ${number}, ${sure}`;
}
const OTHERS = "other slots, places, bounds or hours of the day, so its numbers count something else";
function change(record, earlier, place) {
  if (!earlier || record.terms !== earlier.terms || record.gaps.length || earlier.gaps.length) return null;
  const [now, then] = [record, earlier].map((one) => one.test[cellAt(one, place)]);
  return now && then ? minus(now, then) : null;
}
function changeWords(record, earlier, place, before) {
  if (!earlier) return "There is no period just before to compare with.";
  const found = change(record, earlier, place), period = about.weeks[before].period;
  if (record.terms !== earlier.terms) return `Not compared with ${period}: it is of ${OTHERS}.`;
  if (!found) return record.gaps.length || earlier.gaps.length ? `Not compared with ${period}: a day without input.` : `Not compared with ${period}: too little is known.`;
  const [value, low, high] = ends(found), isTold = low > 0 || high < 0;
  return `Against ${period}: ${signed(value)} (${signed(low)} to ${signed(high)}); ${isTold ? "it changed" : "that cannot be told from no change"}.`;
}
function weekendWords(record, at) {
  const [on, off] = [record.weekday[at], record.weekend[at]];
  if (!on || !isNumber(on[0]) || !off || !isNumber(off[0])) return "";
  const [value, low, high] = ends(minus([on[0], deviation(on)], [off[0], deviation(off)]));
  const told = !isFinite(low) ? "how they differ is not known" : low > 0 ? "weekdays are busier" : high < 0 ? "weekends are busier" : "they cannot be told apart";
  return `A day from Monday to Friday: ${words(on)}; of a weekend: ${words(off)}; ${told}.`;
}
function compareWords(record, place, other) {
  const [one, two] = [place, other].map((each) => record.week[cellAt(record, each)]);
  if (!one || !two || !isNumber(one[0]) || !isNumber(two[0])) return `${nameOf(other)}: no number to compare.`;
  const [value, low, high] = ends(minus([one[0], deviation(one)], [two[0], deviation(two)]));
  const isTold = isFinite(low) && (low > 0 || high < 0);
  const apart = isFinite(low) ? `${signed(value)} (${signed(low)} to ${signed(high)})` : signed(value);
  return `Against ${nameOf(other)}, ${words(two)}: ${apart}; ${isTold ? `${nameOf(value > 0 ? place : other)} has more` : "the two cannot be told apart"}.`;
}
async function dayHours(place, week, day, before) {
  const record = await weekFile(week);
  if (!about.is_count) {
    const at = cellAt(record, place), own = at < 0 ? [] : record.hours[at];
    const earlier = before >= 0 ? await weekFile(before) : null, then = earlier && earlier.terms === record.terms ? cellAt(earlier, place) : -1;
    return {slots: record.slots, now: own, then: then >= 0 ? earlier.hours[then] : null, of: about.weeks[week].period, against: then >= 0 ? about.weeks[before].period : ""};
  }
  const own = await hoursOf(week, place);
  if (!own) return null;
  const threes = (flat) => own.slots.map((_, n) => flat.slice(3 * n, 3 * n + 3));
  const date = own.days[day], sevenBefore = new Date(Date.parse(date) - 7 * 864e5).toISOString().slice(0, 10);
  const found = {slots: own.slots, now: threes(own.hours[day]), then: null, of: dayName(date), against: ""};
  const same = before >= 0 ? await hoursOf(before, place) : null, at = (same ?? own).days.indexOf(sevenBefore);
  if (same && at >= 0 && same.terms === own.terms) Object.assign(found, {then: threes(same.hours[at]), against: dayName(sevenBefore)});
  return found;
}
const dayName = (date) => `${["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"][new Date(date).getUTCDay()]} ${date}`;
function hoursShown(hours, beside, record, day) {
  $("days").replaceChildren(...(about.is_count ? record.days.map((date, n) => {
    const button = make("button", {type: "button", "aria-pressed": n === day, "aria-label": dayName(date)}, dayName(date).slice(0, 3));
    button.onclick = () => go({day: n});
    return button;
  }) : []));
  const second = beside ? {name: nameOf(state.other), points: beside.now} : hours.then ? {name: hours.against, points: hours.then} : null;
  const series = [{name: beside ? nameOf(state.place) : hours.of, points: hours.now}, ...(second ? [second] : [])];
  $("hours-title").textContent = `${capital(about.what)} by time of day, ${hours.of}`;
  chart($("hours"), hours.slots, series, -1, null);
  $("legend").replaceChildren(make("span", {class: "key"}), series[0].name, ...(second ? [make("span", {class: "key two"}), second.name] : []));
  const head = ["from", ...series.flatMap((each) => columns(each.name))];
  const rows = hours.slots.map((slot, n) => [slot, ...series.flatMap((each) => threeOf(each.points[n]))]);
  series.forEach((each, n) => {
    const place = nameOf(n && beside ? state.other : state.place), of = beside ? hours.of : each.name;
    hours.slots.forEach((slot, at) => shown.rows.push([of, place, slot, ...threeOf(each.points[at])]));
  });
  if ($("hours-numbers").open) $("hours-numbers").lastElementChild.replaceChildren(filled(make("table"), `${hours.of}, ${nameOf(state.place)}`, head, rows));
}

// All places: by size over a period or four, all day or at a time; how sure the order is.
async function placesView() {
  const {week, span, slot} = state, record = await weekFile(week);
  const {asked, records, left} = span > 1 ? await upTo(week, span) : {asked: [about.weeks[week].period], records: [record], left: []};
  return () => {
    const at = record.slots.indexOf(slot);
    $("slot").disabled = span > 1;
    const numberOf = (place) => {
      if (span > 1) return summed(records.map((each) => each.test[cellAt(each, place)]));
      const cell = cellAt(record, place);
      return cell < 0 ? null : at >= 0 ? record.hours[cell][at] : record.week[cell];
    };
    const entries = about.places.map((cell, place) => ({place, cell, number: numberOf(place)})).filter((one) => !state.mode || one.cell[0] === state.mode);
    const order = ranked(entries);
    const periods = asked.filter((period) => !left.some(([each]) => each === period));
    const periodWords = left.length || periods.length < 2 ? list(periods) || asked.at(-1) : `${periods[0]} to ${periods.at(-1)}`;
    const when = `${periodWords}${at >= 0 && span === 1 ? ` from ${slot}, all its days together` : ""}`;
    const gaps = records.flatMap((each) => each.gaps);
    said($("ranked"), [
      superlative(order, when),
      gaps.length ? `Without input: ${list(gaps)}; these days are in no sum.` : "",
      ...left.map(([period, why]) => `Left out of the sum: ${period}, ${why}.`),
    ]);
    const head = ["rank", "place", about.unit, "low_95", "high_95", "rank at best", "rank at worst"];
    const rows = order.map((one) => [one.rank, nameOf(one.place), ...threeOf(one.number), one.first, one.last]);
    shown = {name: `places ${when}`, head, rows};
    const some = state.all ? rows : rows.slice(0, SHOWN);
    filled($("table"), `Places by ${about.unit}, ${when}`, head, some, (row) => go({view: "place", place: order[row].place}));
    $("all").hidden = rows.length <= SHOWN;
    $("all").textContent = state.all ? `Show the first ${SHOWN}` : `Show all ${rows.length} places`;
  };
}
// Of the periods up to one those whose numbers add up to its own, and why others do not.
async function upTo(week, span) {
  const last = about.weeks[week].period, at = about.periods.findIndex((one) => one.period === last);
  const asked = about.periods.slice(Math.max(0, at - span + 1), at + 1), records = [], left = [];
  const weeks = asked.map(({period}) => about.weeks.findIndex((one) => one.period === period));
  const found = await Promise.all(weeks.map((number) => number < 0 ? null : weekFile(number)));
  asked.forEach(({period, state}, n) => {
    const record = found[n];
    if (!record) left.push([period, state === "published" ? "of whose places there are no numbers" : `of which this page has nothing (${state})`]);
    else if (record.terms !== found.at(-1).terms) left.push([period, `which is of ${OTHERS}`]);
    else if (record.gaps.length) left.push([period, `as ${list(record.gaps)} had no input`]);
    else records.push(record);
  });
  return {asked: asked.map(({period}) => period), records, left};
}
function summed(tests) {
  const known = tests.filter(Boolean);
  return known.length === tests.length && known.length ? ends([known.reduce((sum, one) => sum + one[0], 0), Math.hypot(...known.map((one) => one[1]))]) : null;
}
// A largest number is named only where it is told apart from each other one at 95 % (Berger 1982).
function superlative(order, when) {
  if (!order.length) return `No place has a number for ${when}.`;
  const first = order[0], error = deviation(first.number);
  const alike = order.filter((one) => !(first.number[0] - one.number[0] > Z95 * Math.hypot(error, deviation(one.number))));
  if (alike.length === 1) return `${LARGEST[about.unit] ?? "The largest number"} of ${when} is ${about.unit === "km/h" || about.is_count ? "" : "that of "}${nameOf(first.place)}: ${words(first.number)}.`;
  const names = alike.slice(0, 3).map((one) => nameOf(one.place));
  if (alike.length > 3) names.push(`${alike.length - 3} more`);
  return `Largest in ${when}: ${list(names)}, which cannot be told apart. ${nameOf(first.place)}: ${words(first.number)}.`;
}

// Changes of a week, with false discoveries held at 5 %.
async function changesView() {
  const {week} = state, before = weekBefore(week);
  const [record, earlier] = await Promise.all([weekFile(week), before >= 0 ? weekFile(before) : null]);
  return () => {
    shown = {name: `changes ${about.weeks[week].period}`, head: ["place", "change", "low_95", "high_95"], rows: []};
    const table = $("change-table");
    table.replaceChildren();
    if (!earlier) return said($("changed"), ["There is no period just before to compare with."]);
    if (record.terms !== earlier.terms) return said($("changed"), [`Not compared with ${about.weeks[before].period}: it is of ${OTHERS}.`]);
    if (record.gaps.length || earlier.gaps.length) return said($("changed"), [`Not compared: without input were ${list([...earlier.gaps, ...record.gaps])}.`]);
    const tested = about.places.map((_, place) => ({place, found: change(record, earlier, place)})).filter((one) => one.found);
    for (const one of tested) one.chance = 2 * above(Math.abs(one.found[0] / one.found[1]));
    const told = discoveries(tested), by = Math.round(FALSE_DISCOVERIES * told.length);
    const chance = by === 1 ? "about one" : by ? `about ${by}` : "perhaps none or one";
    const from = `from ${about.weeks[before].period} to ${about.weeks[week].period}`;
    said($("changed"), [told.length
      ? `${told.length} of ${tested.length} places changed ${from}; ${chance} of them by chance.`
      : `Of ${tested.length} places none changed by more than noise explains ${from}.`]);
    told.sort((one, other) => Math.abs(other.found[0]) - Math.abs(one.found[0]));
    shown.rows = told.map((one) => [nameOf(one.place), ...ends(one.found).map((each) => Math.round(10 * each) / 10)]);
    if (told.length) filled(table, "Changes, the largest first", shown.head, shown.rows, (row) => go({view: "place", place: told[row].place}));
  };
}

function filled(table, caption, head, rows, pick) {
  const texts = (row) => row.map((one) => isNumber(one) ? one.toLocaleString("en", {maximumFractionDigits: 1}) : one);
  const at = head.indexOf("place");
  const line = (row, n) => make("tr", {}, ...texts(row).map((text, column) => {
    if (pick && column === at) { const button = make("button", {type: "button"}, text); button.onclick = () => pick(n); return make("td", {}, button); }
    return make("td", isNumber(row[column]) ? {class: "number"} : {}, text);
  }));
  table.replaceChildren(
    make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...head.map((name) => make("th", {scope: "col"}, name)))),
    make("tbody", {}, ...rows.map(line)),
  );
  return table;
}

// A chart: lines, and 95 % intervals as bands, or as rules where points are few.
function chart(element, labels, series, at, pick) {
  const em = parseFloat(getComputedStyle(element).fontSize), size = 0.78 * em;
  const width = Math.max(18 * em, element.clientWidth), height = 14 * em;
  const [left, right, top, bottom] = [3.3 * em, 0.8 * em, 0.6 * em, 1.6 * em];
  const known = series.flatMap((one) => one.points).filter((one) => one && isNumber(one[0]));
  const every = known.flatMap((one) => one.slice(0, 3).filter(isNumber).map(least));
  const highest = Math.max(1, ...every), smallest = Math.min(highest - 1, ...every);
  const lowest = smallest < highest / 2 ? Math.min(0, smallest) : smallest;  // lines, not bars
  const x = (n) => left + (width - left - right) * (labels.length < 2 ? 0.5 : n / (labels.length - 1));
  const y = (value) => top + (height - top - bottom) * (1 - (least(value) - lowest) / (highest - lowest));
  const words = series.map((one) => `${one.name}: ${spanWords(labels, one.points)}`).join("; ");
  const svg = drawn("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${about.what} with 95 % intervals. ${words}`});
  for (const value of ticks(lowest, highest)) svg.append(
    drawn("line", {class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value)}),
    drawn("text", {x: left - 6, y: y(value) + 4, "text-anchor": "end", "font-size": size}, value.toLocaleString("en", {notation: "compact"})));
  const step = Math.ceil(labels.length / Math.max(2, Math.floor((width - left) / (7 * em))));
  labels.forEach((label, n) => { if (n % step === 0) svg.append(drawn("text", {x: x(n), y: height - 0.4 * em, "font-size": size, "text-anchor": n === 0 ? "start" : x(n) > width - 3 * em ? "end" : "middle"}, label)); });
  if (at >= 0) svg.append(drawn("line", {class: "at", x1: x(at), x2: x(at), y1: top, y2: height - bottom}));
  series.forEach((one, number) => svg.append(linesOf(one.points, x, y, number, labels.length)));
  if (pick) svg.onclick = (event) => {
    const box = svg.getBoundingClientRect(), place = (event.clientX - box.left) * width / box.width;
    pick(Math.max(0, Math.min(labels.length - 1, Math.round((place - left) / (width - left - right) * (labels.length - 1)))));
  };
  element.replaceChildren(svg);
}
function linesOf(points, x, y, number, length) {
  const group = drawn("g", number ? {class: "second"} : {}), shift = number && length <= 60 ? 4 : 0, few = length <= 60;
  let line = "", upper = [], lower = [];
  const flush = () => { if (upper.length > 1) group.append(drawn("path", {class: "band", d: `M${upper.join("L")}L${lower.reverse().join("L")}Z`})); upper = []; lower = []; };
  points.forEach((one, n) => {
    if (!one || !isNumber(one[0])) { line += " "; flush(); return; }
    line += `${line.endsWith(" ") || !line ? "M" : "L"}${x(n) + shift},${y(one[0])}`;
    if (!isNumber(one[1])) { flush(); }
    else if (few) group.append(drawn("line", {class: "rule", x1: x(n) + shift, x2: x(n) + shift, y1: y(one[1]), y2: y(one[2])}));
    else { upper.push(`${x(n)},${y(one[2])}`); lower.push(`${x(n)},${y(one[1])}`); }
    if (few) group.append(drawn("circle", {class: "dot", cx: x(n) + shift, cy: y(one[0]), r: 3}));
  });
  flush();
  group.append(drawn("path", {class: "series", d: line.trim()}));
  return group;
}
function spanWords(labels, points) {
  const known = points.map((one, n) => [one, n]).filter(([one]) => one && isNumber(one[0]));
  if (!known.length) return "no number";
  const [last, at] = known.at(-1);
  return `${known.length} of ${labels.length} known, the last ${labels[at]} with ${words(last)}`;
}
function ticks(lowest, highest) {
  const rough = (highest - lowest) / 4, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough), found = [];
  for (let value = Math.ceil(lowest / step) * step; value <= highest; value += step) found.push(value);
  return found;
}

// The map: places where they are, as large as their number; nearest to a click or in a direction.
let scale = 1;
const position = (place) => { const [, , x, y] = about.places[place]; return isNumber(x) ? [x, y] : null; };
function drawMap(record) {
  const placed = about.places.map((_, n) => n).filter(position);
  $("map").hidden = $("closer").parentElement.hidden = !placed.length;
  if (!placed.length) return;
  const all = placed.map(position), [right, bottom] = [0, 1].map((axis) => Math.max(...all.map((one) => one[axis]), 1));
  const chosen = position(state.place) ?? [right / 2, bottom / 2], [width, height] = [right * scale + 60, bottom * scale + 60];
  const corner = (one, whole, part) => scale === 1 ? -30 : Math.max(-30, Math.min(whole + 30 - part, one - part / 2));
  const box = [corner(chosen[0], right, width), corner(chosen[1], bottom, height), width, height];
  const svg = drawn("svg", {viewBox: box.join(" "), role: "img", "aria-label": `Map of ${placed.length} places; chosen is ${nameOf(state.place)}`});
  for (const flat of about.lines) svg.append(drawn("path", {class: "line", d: "M" + pairs(flat).map((one) => one.join(",")).join("L")}));
  const size = (place) => { const number = record.week[cellAt(record, place)]; return number && isNumber(number[0]) ? Math.max(0, number[0]) : 0; };
  const most = Math.max(1, ...placed.map(size));
  for (const place of placed.sort((one, other) => (one === state.place) - (other === state.place) || size(other) - size(one))) {
    const [cx, cy] = position(place), isChosen = place === state.place;
    svg.append(drawn("circle", {cx, cy, r: ((isChosen ? 8 : 4) + 16 * Math.sqrt(size(place) / most)) * Math.sqrt(scale), ...(isChosen ? {class: "chosen"} : {})}, drawn("title", {}, nameOf(place))));
  }
  svg.onclick = (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const far = (place) => Math.hypot(position(place)[0] - point.x, position(place)[1] - point.y);
    go({place: placed.reduce((best, one) => far(one) < far(best) ? one : best)});
  };
  $("map").replaceChildren(svg);
}
const pairs = (flat) => Array.from({length: flat.length / 2}, (_, n) => flat.slice(2 * n, 2 * n + 2));
function zoom(by) { scale = Math.max(0.05, Math.min(1, scale * by)); show(); }
function nextPlace([dx, dy]) {
  const from = position(state.place);
  let best = -1, least = Infinity;
  if (from) about.places.forEach((_, place) => {
    const to = position(place);
    if (!to || place === state.place) return;
    const along = (to[0] - from[0]) * dx + (to[1] - from[1]) * dy, across = Math.abs((to[0] - from[0]) * dy + (to[1] - from[1]) * dx);
    if (along > 0 && along >= across && along + 2 * across < least) { least = along + 2 * across; best = place; }
  });
  return best;
}

// What is seen, as CSV: RFC 4180, UTF-8.
function download() {
  const quoted = (one) => /[",\n]/.test(one) ? `"${String(one).replaceAll('"', '""')}"` : one;
  const text = [shown.head, ...shown.rows].map((row) => row.map(quoted).join(",")).join("\r\n");
  const link = make("a", {download: `${about.programme} ${shown.name}.csv`.replace(/[^\w.-]+/g, "-"), href: URL.createObjectURL(new Blob([text + "\r\n"], {type: "text/csv"}))});
  link.click();
  URL.revokeObjectURL(link.href);
}
})();
