'use strict';
// Draws the report from the data in #data. Everything that comes from a run is set as text, never as
// markup: this script has no innerHTML and evaluates nothing.
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const runs = data.runs;
  const several = runs.length > 1;
  const kColours = 8, kPage = 50;
  const shown = runs.map(() => true);
  const redraws = [];  // called when runs are switched on or off

  // ---- elements ----
  const fill = (node, children) => {
    for (const child of children.flat(9)) {
      if (child === null || child === undefined || child === false) continue;
      node.append(child instanceof Node ? child : String(child));
    }
    return node;
  };
  const put = (node, attributes) => {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
      else if (value === true) node.setAttribute(name, '');
      else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
    }
    return node;
  };
  const el = (name, attributes, ...children) =>
    fill(put(document.createElement(name), attributes), children);
  const svg = (name, attributes, ...children) =>
    fill(put(document.createElementNS('http://www.w3.org/2000/svg', name), attributes), children);
  const colour = (run) => `var(--c${run % kColours})`;
  const dot = (run) => {
    const mark = el('span', { class: 'dot' });
    mark.style.color = colour(run);
    return mark;
  };

  // ---- text ----
  // Control characters, and those that are invisible or reorder a line, are shown by their number.
  const odd = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/u;
  const oddAll = new RegExp(odd.source, 'gu');
  const codeOf = (c) => 'U+' + c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0');
  const plain = (text) => String(text).replace(oddAll, (c) => `[${codeOf(c)}]`);
  const textOf = (text) => {
    const value = String(text);
    if (!odd.test(value)) return [value];
    const parts = [];
    let at = 0;
    for (const match of value.matchAll(oddAll)) {
      if (match.index > at) parts.push(value.slice(at, match.index));
      parts.push(el('span', { class: 'odd' }, `[${codeOf(match[0])}]`));
      at = match.index + match[0].length;
    }
    if (at < value.length) parts.push(value.slice(at));
    return parts;
  };
  const model = (...children) => el('div', { class: 'model', dir: 'auto' }, children);
  const clip = (text) => el('div', { class: 'clip', dir: 'auto' }, textOf(String(text).slice(0, 400)));
  const number = (value, digits = 4) => {
    if (value === null || value === undefined || !Number.isFinite(value)) return '\u2013';
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-4 || size >= 1e7)) return value.toExponential(Math.max(digits - 2, 1));
    return String(Number(value.toPrecision(digits)));
  };
  const sentence = (text) => (several ? text : text[0].toUpperCase() + text.slice(1)) + '.';
  const count = (value) => Number(value || 0).toLocaleString('en');
  const share = (value) => `${(100 * value).toFixed(value < 0.1 ? 1 : 0)} %`;
  const seconds = (value) => {
    if (!Number.isFinite(value)) return '\u2013';
    if (value < 120) return `${number(value, 3)} s`;
    if (value < 7200) return `${number(value / 60, 3)} min`;
    return `${number(value / 3600, 3)} h`;
  };
  const bytes = (value) => value < 1 << 20 ? `${number(value / 1024, 3)} KiB` : `${number(value / (1 << 20), 3)} MiB`;
  const moment = (s) => s ? new Date(1000 * s).toISOString().replace('T', ' ').slice(0, 19) + ' UTC' : '\u2013';
  const mean = (values) => {
    const known = (values || []).filter((one) => Number.isFinite(one));
    return known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
  };
  const facts = (rows) => el('dl', { class: 'facts' }, rows.filter((row) => row[1] !== null && row[1] !== '')
    .map(([name, value]) => [el('dt', {}, name), el('dd', {}, value instanceof Node ? value : textOf(value))]));
  const runName = (run) => [dot(run), ' ', textOf(runs[run].name)];

  // ---- tables that sort, search and turn pages ----
  // columns: {name, value(row) for sorting, cell(row), className}
  const table = ({ columns, rows, detail, rowClass, search, empty, sort }) => {
    let order = sort || null, page = 0, words = '', keep = () => true;
    const open = new Set();
    const body = el('tbody'), where = el('span', { class: 'soft' });
    const heads = columns.map((column, at) => {
      const head = el('th', { scope: 'col', class: column.className === 'number' ? 'number' : '' },
        column.value ? el('button', { type: 'button', onclick: () => {
          order = { at, down: order && order.at === at ? !order.down : column.className === 'number' };
          page = 0;
          draw();
        } }, column.name) : column.name);
      return head;
    });
    const previous = el('button', { type: 'button', class: 'plain', onclick: () => { --page; draw(); } }, 'Previous');
    const next = el('button', { type: 'button', class: 'plain', onclick: () => { ++page; draw(); } }, 'Next');
    const texts = new Map();
    const textFor = (row) => {
      if (!texts.has(row)) texts.set(row, search(row).toLowerCase());
      return texts.get(row);
    };
    const compare = (a, b) => {
      if (a === b) return 0;
      const none = (x) => x === null || x === undefined || Number.isNaN(x);
      if (none(a) || none(b)) return none(a) ? (none(b) ? 0 : 1) : -1;  // none comes last
      const up = a < b ? -1 : 1;
      return order.down ? -up : up;
    };
    const line = (row) => {
      const tr = el('tr', { class: `${detail ? 'row ' : ''}${rowClass ? rowClass(row) : ''}`, tabindex: detail ? 0 : null },
        columns.map((column) => el('td', { class: column.className || '' }, column.cell(row))));
      if (!detail) return tr;
      const turn = () => { open.has(row) ? open.delete(row) : open.add(row); draw(); };
      tr.addEventListener('click', turn);
      tr.addEventListener('keydown', (event) => { if (event.key === 'Enter') turn(); });
      if (!open.has(row)) return tr;
      return [tr, el('tr', { class: 'detail' }, el('td', { colspan: columns.length }, el('div', { class: 'whole' }, detail(row))))];
    };
    const draw = () => {
      let found = rows.filter(keep);
      if (words) found = found.filter((row) => words.split(/\s+/).every((word) => textFor(row).includes(word)));
      if (order) {
        const value = columns[order.at].value;
        found = found.slice().sort((a, b) => compare(value(a), value(b)));
      }
      heads.forEach((head, at) => {
        if (order && order.at === at) head.setAttribute('aria-sort', order.down ? 'descending' : 'ascending');
        else head.removeAttribute('aria-sort');
      });
      const pages = Math.max(1, Math.ceil(found.length / kPage));
      page = Math.min(Math.max(page, 0), pages - 1);
      const here = found.slice(page * kPage, (page + 1) * kPage);
      body.replaceChildren(...here.map(line).flat());
      if (!here.length) body.append(el('tr', {}, el('td', { colspan: columns.length, class: 'soft' }, empty || 'Nothing fits.')));
      where.textContent = `${count(found.length)} of ${count(rows.length)}${pages > 1 ? `, page ${page + 1} of ${pages}` : ''}`;
      previous.disabled = page === 0;
      next.disabled = page === pages - 1;
      pagers.hidden = pages === 1;
    };
    const pagers = el('span', {}, previous, ' ', next);
    const box = search && el('input', { type: 'search', placeholder: 'Search', 'aria-label': 'Search', oninput: () => {
      words = box.value.trim().toLowerCase();
      page = 0;
      draw();
    } });
    return {
      box, where, pagers, draw,
      keepOnly: (test) => { keep = test; page = 0; draw(); },
      node: el('div', { class: 'scroll' }, el('table', {}, el('thead', {}, el('tr', {}, heads)), body)),
    };
  };
  const only = (run) => shown[run];

  // ---- charts ----
  const charts = { log: false, time: false, smooth: 0 };
  const longest = Math.max(0, ...runs.flatMap((run) => run.clock.y));  // seconds
  const unit = longest > 7200 ? ['h', 3600] : longest > 120 ? ['min', 60] : ['s', 1];
  // Between two known steps by a straight line.
  const timeOf = (run, step) => {
    const { x, y } = runs[run].clock;
    let low = 0, high = x.length - 1;
    if (high < 0) return 0;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (x[middle] <= step) low = middle; else high = middle;
    }
    const share = x[high] > x[low] ? Math.min(Math.max((step - x[low]) / (x[high] - x[low]), 0), 1) : 0;
    return (y[low] + share * (y[high] - y[low])) / unit[1];
  };
  // The exponential moving mean of the points, started anew behind a break.
  const smoothed = (points) => {
    let mean = null;
    return charts.smooth ? points.map((p) => {
      mean = p.y === null ? null : mean === null ? p.y : charts.smooth * mean + (1 - charts.smooth) * p.y;
      return { ...p, y: mean };
    }) : points;
  };
  const ticks = (low, high, wanted) => {
    const rough = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough * (1 - 1e-9)) || rough;
    const out = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9 && out.length < 20; ++i) out.push(i * step);
    return out;
  };
  // Logarithms: of 1, 2 and 5 times powers of 10, of powers alone where there are many, of every nth.
  const logTicks = (low, high, most) => {
    for (const factors of [[1, 2, 5], [1]]) {
      const out = [];
      for (let power = Math.floor(low); power <= high && out.length <= 999; ++power) {
        out.push(...factors.map((factor) => power + Math.log10(factor)).filter((one) => one >= low - 1e-9 && one <= high + 1e-9));
      }
      if (out.length >= 2 && out.length <= most) return out;
    }
    return ticks(low, high, most - 1);
  };
  const chart = (name) => {
    const width = 420, height = 210, left = 50, right = 412, top = 8, bottom = 184;
    const curves = runs.map((run) => run.metrics[name]);
    const read = el('div', { class: 'read' });
    const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': plain(name) });
    const notes = [];
    curves.forEach((curve, run) => {
      if (!curve) return;
      const who = several ? `${plain(runs[run].name)}: ` : '';
      if (curve.bucket > 1) notes.push(`${who}of each ${count(curve.bucket)} values the mean, and pale the least and the greatest`);
      if (curve.not_finite) notes.push(`${who}${count(curve.not_finite)} values are not finite`);
    });
    let xOf, points = [];
    const cursor = svg('line', { class: 'cursor', y1: top, y2: bottom, visibility: 'hidden' });
    const last = () => curves.map((curve, run) => curve && shown[run] && curve.last !== undefined
      ? [several && dot(run), several && ' ', `${number(curve.last)}  `] : null);
    // On the logarithmic scale a value that is not positive breaks the line.
    const pairs = (run, xs, ys) => xs.map((step, i) =>
      ({ step, x: charts.time ? timeOf(run, step) : step, y: charts.log && !(ys[i] > 0) ? null : ys[i] }));
    const say = (...what) => { read.replaceChildren(); fill(read, what); };
    const draw = () => {
      points = curves.map((curve, run) => curve && shown[run] ? pairs(run, curve.x, curve.y) : []);
      const all = points.flat().filter((p) => p.y !== null);
      picture.replaceChildren();
      say(last());
      if (!all.length) {
        picture.append(svg('text', { x: width / 2, y: height / 2, 'text-anchor': 'middle' },
          charts.log ? 'no positive values' : 'no values'));
        xOf = null;
        return;
      }
      const lift = (y) => charts.log ? Math.log10(y) : y;
      let low = Infinity, high = -Infinity, first = Infinity, end = -Infinity;
      for (const p of all) {
        low = Math.min(low, lift(p.y));
        high = Math.max(high, lift(p.y));
        first = Math.min(first, p.x);
        end = Math.max(end, p.x);
      }
      if (low === high) {
        const room = low === 0 ? 1 : Math.abs(low) / 2;
        if (low !== 0) low -= room;
        high += room;
      }
      if (first === end) { first -= 1; end += 1; }
      const px = (x) => left + (x - first) / (end - first) * (right - left);
      const py = (y) => bottom - (lift(y) - low) / (high - low) * (bottom - top);
      xOf = (pixel) => first + (pixel - left) / (right - left) * (end - first);
      for (const tick of charts.log ? logTicks(low, high, 6) : ticks(low, high, 4)) {
        const at = bottom - (tick - low) / (high - low) * (bottom - top);
        picture.append(svg('line', { class: 'grid', x1: left, x2: right, y1: at, y2: at }),
          svg('text', { x: left - 6, y: at + 4, 'text-anchor': 'end' }, number(charts.log ? 10 ** tick : tick, 3)));
      }
      for (const tick of ticks(first, end, 5).filter((one) => charts.time || Number.isInteger(one))) {
        picture.append(svg('text', { x: px(tick), y: bottom + 18, 'text-anchor': px(tick) > right - 16 ? 'end' : 'middle' }, charts.time ? `${number(tick, 3)} ${unit[0]}` : count(tick)));
      }
      // Where the run's rewards changed.
      runs.forEach((run, index) => {
        if (!shown[index] || !points[index].length) return;
        for (const {step, text} of run.log.marks) {
          const x = charts.time ? timeOf(index, step) : step;
          if (x < first || x > end) continue;
          const line = svg('line', {class: 'mark', x1: px(x), x2: px(x), y1: top, y2: bottom});
          line.append(svg('title', {}, `step ${count(step)}: ${plain(text)}`));
          line.style.stroke = colour(index);
          picture.append(line);
        }
      });
      const path = (line, run, className) => {
        let way = '', down = false;
        for (const p of line) {
          if (p.y === null) { down = false; continue; }
          way += `${down ? 'L' : 'M'}${px(p.x).toFixed(1)},${py(p.y).toFixed(1)}`;
          down = true;
        }
        const drawn = svg('path', { class: className, d: way });
        drawn.style.stroke = colour(run);
        picture.append(drawn);
      };
      points.forEach((line, run) => {
        if (!line.length) return;
        const means = curves[run].mean_x;
        const calm = means ? pairs(run, means, curves[run].mean_y) : line;
        path(line, run, means || charts.smooth ? 'curve pale' : 'curve');
        if (means || charts.smooth) path(smoothed(calm), run, 'curve');
        const real = line.filter((p) => p.y !== null);
        if (real.length === 1) {
          const mark = svg('circle', { cx: px(real[0].x), cy: py(real[0].y), r: 3 });
          mark.style.fill = colour(run);
          picture.append(mark);
        }
      });
      picture.append(cursor);
      cursor.place = (x) => { cursor.setAttribute('x1', px(x)); cursor.setAttribute('x2', px(x)); };
    };
    picture.addEventListener('pointermove', (event) => {
      if (!xOf) return;
      const box = picture.getBoundingClientRect();
      const wanted = xOf((event.clientX - box.left) / box.width * width);
      const near = points.map((line) => line.reduce((best, p) =>
        p.y !== null && (!best || Math.abs(p.x - wanted) < Math.abs(best.x - wanted)) ? p : best, null));
      const nearest = near.filter(Boolean).sort((a, b) => Math.abs(a.x - wanted) - Math.abs(b.x - wanted))[0];
      if (!nearest) return;
      cursor.place(nearest.x);
      cursor.setAttribute('visibility', 'visible');
      say(`step ${count(nearest.step)}${charts.time ? `, ${number(nearest.x, 3)} ${unit[0]}` : ''}: `, near.map((p, run) => p &&
        [several && dot(run), several && ' ', `${number(p.y)}${p.step !== nearest.step ? ` (${count(p.step)})` : ''}  `]));
    });
    picture.addEventListener('pointerleave', () => {
      cursor.setAttribute('visibility', 'hidden');
      say(last());
    });
    const card = el('div', { class: 'card chart' }, el('h4', {}, textOf(name)), read, picture,
      notes.map((note) => el('p', { class: 'note' }, note)));
    // Drawn when it comes into view.
    let visible = false;
    const watch = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      watch.disconnect();
      visible = true;
      draw();
    }, { rootMargin: '400px' });
    picture.append(svg('text', { x: 0, y: 0 }, ''));
    watch.observe(card);
    redraws.push(() => { if (visible) draw(); });
    return card;
  };

  // ---- sections ----
  const sections = [];
  const section = (id, title, hint, ...children) => {
    sections.push([id, title]);
    return el('section', { id }, el('h2', {}, title), hint && el('div', { class: 'soft small' }, hint), children);
  };
  const kinds = ['reward/', 'response/', 'perf/', 'value/', 'time/', 'policy/', 'kl/', 'alarm/', 'async/'];
  const kindOf = (name) => (kinds.findIndex((kind) => name.startsWith(kind)) + kinds.length + 1) % (kinds.length + 1);
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.metrics)))]
    .sort((a, b) => kindOf(a) - kindOf(b));

  const legend = () => el('div', { class: 'legend' }, runs.map((run, at) => {
    const chip = el('button', { type: 'button', class: 'chip', 'aria-pressed': 'true', title: plain(run.path), onclick: () => {
      shown[at] = !shown[at];
      chip.setAttribute('aria-pressed', String(shown[at]));
      for (const redraw of redraws) redraw();
    } }, dot(at), el('span', {}, textOf(run.name)));
    return chip;
  }));

  const overview = () => {
    const card = (run, at) => el('div', { class: 'card' },
      el('div', {}, runName(at), '  ', el('span', { class: run.running ? 'badge live' : 'badge' }, run.running ? 'running' : 'not running here')),
      facts([
        ['method', run.method],
        ['model', run.model],
        ['steps done', `${count(run.last_step)}${Number(run.steps_wanted) > 0 ? ` of ${count(run.steps_wanted)}` : ''}`],
        ['first record', moment(run.first_time_s)],
        ['last record', `${moment(run.last_time_s)}${run.last_time_s > run.first_time_s ? `, ${seconds(run.last_time_s - run.first_time_s)} later` : ''}`],
        ['checkpoints', run.checkpoints.length ? `${count(run.checkpoints.length)}, the last is ${run.checkpoints[run.checkpoints.length - 1]}` : 'none'],
        ['arithmetic', run.arithmetic],
        ['folder', run.path],
      ]));
    const heads = ['reward/mean', 'eval/pass@1', 'eval/greedy', 'eval/reward', 'eval/loss', 'eval/accuracy', 'rewards/accuracies', 'policy/loss', 'kl/ref', 'response/length_mean', 'perf/tokens_per_s'].filter((name) => names.includes(name));
    const cell = (curve) => !curve || curve.last === undefined ? '\u2013'
      : [number(curve.first), ' \u2192 ', el('b', {}, number(curve.last))];
    const summary = heads.length && el('div', { class: several ? 'scroll' : 'scroll fit' }, el('table', {},
      el('thead', {}, el('tr', {}, el('th', {}, 'metric'), runs.map((run, at) => el('th', { class: 'number' }, several ? runName(at) : 'first \u2192 last')))),
      el('tbody', {}, heads.map((name) => el('tr', {}, el('td', { class: 'key' }, name), runs.map((run) =>
        el('td', { class: 'number' }, cell(run.metrics[name]))))))));
    const troubles = runs.map((run, at) => run.notes.length > 0 && el('div', { class: 'card warn' },
      el('b', {}, 'What could not be read'), several ? [' of ', runName(at)] : '',
      el('ul', {}, run.notes.map((note) => el('li', {}, textOf(note))))));
    return section('overview', 'Overview', null, el('div', { class: 'cards' }, runs.map(card)), troubles,
      summary && [el('h3', {}, 'First and last values'), summary]);
  };

  const curvesSection = () => {
    const groups = data.groups.map((title, at) => [title, names.filter((name) => runs.some((run) => run.metrics[name] && run.metrics[name].group === at))])
      .filter(([, own]) => own.length);
    const boxes = groups.map(([title, own]) => {
      const cards = own.map((name) => [name, chart(name)]);
      const box = el('details', { class: 'group', open: true }, el('summary', {}, `${title} (${own.length})`),
        el('div', { class: 'cards' }, cards.map(([, card]) => card)));
      return { box, cards };
    });
    const find = el('input', { type: 'search', placeholder: 'Metric', 'aria-label': 'Metric', oninput: () => {
      const word = find.value.trim().toLowerCase();
      for (const { box, cards } of boxes) {
        let any = false;
        for (const [name, card] of cards) {
          card.hidden = !name.toLowerCase().includes(word);
          any = any || !card.hidden;
        }
        box.hidden = !any;
      }
    } });
    const scale = el('input', { type: 'checkbox', onchange: () => {
      charts.log = scale.checked;
      for (const redraw of redraws) redraw();
    } });
    const choose = (label, options, take) => {
      const box = el('select', { 'aria-label': label, onchange: () => {
        take(Number(box.value));
        for (const redraw of redraws) redraw();
      } }, options.map(([text, value]) => el('option', { value }, text)));
      return box;
    };
    const axis = choose('Axis', [['by step', 0], ['by time', 1]], (value) => { charts.time = value === 1; });
    const smooth = choose('Smoothing', [['not smoothed', 0], ['smoothed', 0.7], ['much smoothed', 0.93]], (value) => { charts.smooth = value; });
    return section('curves', 'Curves', 'Groups as in docs/metrics.md. Move over a chart to read values.',
      groups.length ? el('div', { class: 'tools' }, find, axis, smooth, el('label', {}, scale, ' logarithmic')) : el('p', { class: 'soft' }, 'No metrics.'),
      boxes.map(({ box }) => box));
  };

  const palette = ['--c0', '--c1', '--c4', '--c5', '--c2', '--c3', '--c6', '--c7'];
  const bar = (parts) => {
    const all = parts.reduce((sum, part) => sum + part.value, 0) || 1;
    const strip = el('div', { class: 'bar' }, parts.map((part) => {
      const piece = el('i', { title: plain(`${part.name}: ${seconds(part.value)}, ${share(part.value / all)}`) });
      piece.style.width = `${100 * part.value / all}%`;
      piece.style.background = `var(${part.colour})`;
      return piece;
    }));
    const keys = el('div', { class: 'keys' }, parts.filter((part) => part.value / all >= 0.005).map((part) => {
      const mark = el('b');
      mark.style.background = `var(${part.colour})`;
      return el('span', {}, mark, textOf(part.name), ` ${share(part.value / all)}`);
    }));
    return [strip, keys];
  };
  const sumOf = (run, name) => (run.metrics[name] && run.metrics[name].sum) || 0;
  const timeSection = () => {
    const parts = (run) => {
      const step = sumOf(run, 'time/step'), own = ['generate', 'train', 'sync'].map((name) => sumOf(run, `time/${name}`));
      const list = ['waiting for groups', 'training', 'publishing and committing'].map((name, at) => ({ name, value: own[at], colour: palette[at] }));
      const rest = step - own.reduce((a, b) => a + b, 0);
      list.push({ name: own.some((one) => one > 0) ? 'other' : 'steps', value: Math.max(rest, 0), colour: palette[3] });
      list.push({ name: 'evaluation', value: sumOf(run, 'time/eval'), colour: palette[4] });
      return list.filter((part) => part.value > 0);
    };
    // By name and node what each role did. The trace tells busy times apart; status.json does not.
    const spansOf = (run) => run.trace && run.trace.length
      ? run.trace.filter((role) => role.seconds > 0).map((role) => ({ ...role, all: role.seconds }))
      : !run.company ? [] : run.company.roles.map((role) => ({
        name: role.name || '', node: role.node || '', all: role.wall_s || 0,
        spans: [['busy', 'busy', role.busy_s || 0], ['paused', 'paused', role.paused_s || 0],
          ...role.idle.map(([cause, value]) => ['idle', cause || 'idle', value])],
      }));
    const tonesOf = { busy: ['--c4', '--c3', '--c0', '--c6'], paused: ['--c5'], idle: ['--c1', '--c7', '--c2'] };
    const roleRows = (roles) => roles.map((role) => {
      const seen = {};
      const list = role.spans.map(([state, cause, value]) => {
        const own = tonesOf[state] || tonesOf.idle, at = seen[state] = (seen[state] === undefined ? -1 : seen[state]) + 1;
        return { name: cause, value, colour: own[at % own.length], busy: state === 'busy' };
      }).filter((part) => part.value > 0).sort((a, b) => b.busy - a.busy);
      const busy = list.reduce((sum, part) => sum + (part.busy ? part.value : 0), 0);
      return el('tr', {}, el('td', {}, textOf(role.name)), el('td', {}, textOf(role.node)),
        el('td', { class: 'number' }, role.all ? share(busy / role.all) : '\u2013'), el('td', { class: 'times' }, bar(list)));
    });
    const each = runs.map((run, at) => {
      const own = parts(run), company = run.company, roles = spansOf(run);
      const ages = company && company.ages.length ? company.ages.map(([age, value]) => ({ name: `age ${age}`, value, colour: palette[age % 8] })) : [];
      const tokens = run.metrics['perf/tokens_per_s'], stale = run.metrics['async/staleness_mean'];
      const ageTotal = ages.reduce((sum, one) => sum + one.value, 0) || 1;
      return el('div', { class: 'card' }, several && el('div', {}, runName(at)),
        el('h3', {}, 'Updates by phase'), own.length ? bar(own) : el('p', { class: 'soft small' }, 'The run has no times yet.'),
        facts([
          ['throughput', tokens && tokens.count ? `${number(tokens.sum / tokens.count)} tokens/s on average, ${number(tokens.last)} in the last step` : null],
          ['staleness', stale && stale.count ? `${number(stale.sum / stale.count)} updates on average` : null],
          ['versions', run.ledger && run.ledger.groups ? `${share(run.ledger.spans.reduce((sum, [span, groups]) => sum + (span > 0 ? groups : 0), 0) / run.ledger.groups)} of the groups have tokens of more than one version` : null],
          ['busy together', company && company.watched_s ? `generators and policy ${share((company.busy_together_s || 0) / company.watched_s)} of ${seconds(company.watched_s)}` : null],
        ]),
        ages.length > 1 && [el('h3', {}, 'Trained tokens by age in updates'), el('div', { class: 'bar' }, ages.map((part) => {
          const piece = el('i', { title: `${part.name}: ${count(part.value)} tokens` });
          piece.style.width = `${100 * part.value / ageTotal}%`;
          piece.style.background = `var(${part.colour})`;
          return piece;
        })), el('div', { class: 'keys' }, ages.map((part) => {
          const mark = el('b');
          mark.style.background = `var(${part.colour})`;
          return el('span', {}, mark, `${part.name}: ${share(part.value / ageTotal)}`);
        }))],
        roles.length > 0 && [el('h3', {}, 'Roles'), el('div', { class: 'scroll' }, el('table', {},
          el('thead', {}, el('tr', {}, el('th', {}, 'role'), el('th', {}, 'node'), el('th', { class: 'number' }, 'busy'), el('th', {}, 'time'))),
          el('tbody', {}, roleRows(roles))))],
        company && company.nodes.length > 0 && [el('h3', {}, 'Nodes'), el('div', { class: 'scroll' }, el('table', {},
          el('thead', {}, el('tr', {}, ['node', 'host', 'cores', 'memory', 'health'].map((name) => el('th', {}, name)))),
          el('tbody', {}, company.nodes.map((node) => el('tr', {}, el('td', {}, textOf(node.name || '')), el('td', {}, textOf(node.host || '')),
            el('td', {}, node.cores || ''), el('td', {}, node.memory_bytes ? bytes(node.memory_bytes) : ''), el('td', {}, textOf(node.health || '')))))))],
        !roles.length && el('p', { class: 'soft small' }, 'Shares by role come from trace.json (log.trace), or from status.json, which a run over several processes writes when it ends.'));
    });
    return section('time', 'Time', null, each);
  };

  // ---- rollouts ----
  const tones = {
    prob: (value) => value === null ? null : `rgb(232 125 20 / ${(0.75 * Math.min(1, -value / 5)).toFixed(3)})`,
    sign: (value, most) => value === null || !most ? null
      : `rgb(${value < 0 ? '220 50 47' : '30 160 80'} / ${(0.65 * Math.min(1, Math.abs(value) / most)).toFixed(3)})`,
  };
  const modes = [['none', 'no colours'], ['lp', 'log-prob'], ['adv', 'advantage'], ['ref', 'log-prob less the reference\u2019s']];
  const anySample = (test) => runs.some((run) => run.rollouts.groups.some((group) => group.samples.some(test)));
  let mode = anySample((one) => one.tok) ? 'lp' : anySample((one) => one.adv !== undefined) ? 'adv' : 'none';
  const tokenValue = (sample, at, kind) => {
    const tok = sample.tok;
    if (kind === 'lp') return tok.lp[at];
    if (kind === 'adv') return tok.adv ? tok.adv[at] : sample.adv === undefined ? null : sample.adv;
    if (kind === 'ref') return tok.ref && tok.lp[at] !== null && tok.ref[at] !== null ? tok.lp[at] - tok.ref[at] : null;
    return null;
  };
  const coloured = (sample) => {
    const tok = sample.tok;
    if (!tok) {
      const box = model(textOf(sample.y));
      if (mode === 'adv' && sample.adv !== undefined) box.style.background = tones.sign(sample.adv, 2);
      return box;
    }
    const values = tok.t.map((_, at) => tokenValue(sample, at, mode));
    const most = mode === 'adv' ? 2 : 3;
    return model(tok.t.map((text, at) => {
      const lp = tok.lp[at], adv = tokenValue(sample, at, 'adv'), ref = tokenValue(sample, at, 'ref');
      const said = [`token ${at + 1}`, `log-prob ${number(lp)}`, lp !== null && `probability ${number(Math.exp(lp), 3)}`,
        ref !== null && `less the reference\u2019s ${number(ref)}`, adv !== null && `advantage ${number(adv)}`].filter(Boolean).join(', ');
      const piece = el('span', { class: 'tok', title: said }, text === '' ? el('span', { class: 'odd' }, '\u00b7') : textOf(text));
      const tone = mode === 'lp' ? tones.prob(values[at]) : mode === 'none' ? null : tones.sign(values[at], most);
      if (tone) piece.style.background = tone;
      return piece;
    }));
  };
  const rolloutsSection = () => {
    const rows = runs.flatMap((run, at) => run.rollouts.groups.flatMap((group) => group.samples.map((sample) => ({ run: at, group, sample }))));
    const parts = (object) => Object.entries(object || {}).map(([name, value]) => `${plain(name)} ${typeof value === 'number' ? number(value) : plain(value)}`).join(', ');
    const detail = ({ run, group, sample }) => [
      el('div', { class: 'small soft' }, 'Prompt'), model(textOf(group.p)),
      el('div', { class: 'small soft' }, 'Response'), coloured(sample),
      facts([
        ['label', group.l],
        ['reward', sample.r === null ? 'none' : `${number(sample.r)}${sample.adv !== undefined ? `, advantage ${number(sample.adv)}${sample.tok && sample.tok.adv ? ' at the first token' : ''}` : ''}`],
        ['parts', parts(sample.parts)],
        ['extra', parts(sample.x)],
        ['weights', sample.v0 === sample.v1 ? `version ${sample.v0}` : `versions ${sample.v0} to ${sample.v1}`],
        ['ticket', `step ${group.u}, slot ${group.s}, attempt ${group.a}, sample ${sample.i}; row ${group.id} of the dataset; reward set ${group.set}`],
        ['ended by', `${sample.f}, after ${count(sample.n)} tokens`],
      ]),
      el('p', {}, el('button', { type: 'button', class: 'plain', onclick: (event) => {
        event.stopPropagation();
        group_only = group_only === group ? null : group;
        apply();
      } }, 'Only this group, or all again')),
    ];
    const columns = [
      several && { name: 'run', value: (row) => runs[row.run].name, cell: (row) => runName(row.run) },
      { name: 'step', className: 'number', value: (row) => row.group.u, cell: (row) => row.group.u },
      { name: 'group', className: 'number', value: (row) => row.group.s, cell: (row) => `${row.group.s}.${row.sample.i}` },
      { name: 'prompt', className: 'text', value: (row) => row.group.p, cell: (row) => clip(row.group.p) },
      { name: 'response', className: 'text', value: (row) => row.sample.y, cell: (row) => clip(row.sample.y) },
      { name: 'reward', className: 'number', value: (row) => row.sample.r, cell: (row) => number(row.sample.r) },
      { name: 'parts', value: null, cell: (row) => clip(parts(row.sample.parts)) },
      { name: 'advantage', className: 'number', value: (row) => row.sample.adv, cell: (row) => row.sample.adv === undefined ? '\u2013'
        : el('span', { class: row.sample.adv < 0 ? 'down' : row.sample.adv > 0 ? 'up' : '' }, number(row.sample.adv, 3)) },
      { name: 'tokens', className: 'number', value: (row) => row.sample.n, cell: (row) => count(row.sample.n) },
      { name: 'ended', value: (row) => row.sample.f, cell: (row) => textOf(row.sample.f) },
      { name: 'weights', className: 'number', value: (row) => row.sample.v0, cell: (row) => row.sample.v0 === row.sample.v1 ? row.sample.v0 : `${row.sample.v0}\u2013${row.sample.v1}` },
    ].filter(Boolean);
    let group_only = null;
    const list = table({
      columns, rows, detail, empty: rows.length ? 'Nothing fits.' : 'No rollouts.',
      search: (row) => `${row.group.p}\n${row.sample.y}\n${row.group.l}\n${row.sample.f}`,
    });
    const apply = () => list.keepOnly((row) => only(row.run) && (!group_only || row.group === group_only));
    redraws.push(apply);
    const choose = el('select', { 'aria-label': 'Colours', onchange: () => { mode = choose.value; scale(); list.draw(); } },
      modes.map(([value, text]) => el('option', { value, selected: value === mode }, text)));
    const bar = el('span', { class: 'scale' });
    const scale = () => {
      bar.replaceChildren();
      if (mode === 'lp') fill(bar, ['likely', el('i', { class: 'prob' }), 'unlikely (log-prob -5)']);
      if (mode === 'adv') fill(bar, ['-2', el('i', { class: 'sign' }), '2']);
      if (mode === 'ref') fill(bar, ['-3', el('i', { class: 'sign' }), '3']);
    };
    scale();
    const hints = runs.map((run, at) => {
      const held = run.rollouts, said = [];
      if (!held.files) return null;
      said.push(held.all ? `all ${count(held.samples)} samples of ${count(held.files)} updates`
        : `${count(held.samples)} samples of ${count(held.steps)} of ${count(held.files)} updates (files of ${bytes(held.bytes)}), spread evenly (--rollouts N shows more)`);
      if (held.no_tokens) said.push(`tokens are not coloured, because ${held.no_tokens}`);
      if (held.no_advantages) said.push(`advantages are not shown, because ${held.no_advantages}`);
      return el('div', {}, several && [runName(at), ': '], textOf(sentence(said.join('; '))));
    });
    list.draw();
    return section('rollouts', 'Rollouts', [el('div', {}, 'Click a row for the whole of it.'), hints],
      el('div', { class: 'tools' }, list.box, choose, bar, list.where, list.pagers), list.node);
  };

  const heldOutSection = () => {
    const rows = runs.flatMap((run, at) => run.held_out.rows.map((row) => ({ run: at, row, was: mean(row.before && row.before.r), is: mean(row.after && row.after.r) })));
    if (!rows.length) return null;
    const change = (one) => one.was === null || one.is === null ? null : one.is - one.was;
    const answers = (title, part) => part && [el('div', { class: 'small soft' }, `${title}: ${part.r.map((score) => number(score)).join(', ')}`),
      part.y.map((text) => model(textOf(text))), part.n > part.y.length && el('div', { class: 'small soft' }, `and ${count(part.n - part.y.length)} more answers`)];
    const list = table({
      rows,
      columns: [
        several && { name: 'run', value: (one) => runs[one.run].name, cell: (one) => runName(one.run) },
        { name: 'problem', className: 'text', value: (one) => one.row.p, cell: (one) => clip(one.row.p) },
        { name: 'label', className: 'text', value: (one) => one.row.l, cell: (one) => clip(one.row.l) },
        { name: 'mode', value: (one) => one.row.mode, cell: (one) => textOf(one.row.mode) },
        { name: 'before', className: 'number', value: (one) => one.was, cell: (one) => number(one.was, 3) },
        { name: 'after', className: 'number', value: (one) => one.is, cell: (one) => number(one.is, 3) },
        { name: 'change', className: 'number', value: change, cell: (one) => el('span', { class: change(one) < 0 ? 'down' : change(one) > 0 ? 'up' : '' }, number(change(one), 3)) },
        { name: 'answer before', className: 'text', cell: (one) => one.row.before && one.row.before.y.length ? clip(one.row.before.y[0]) : '\u2013' },
        { name: 'answer after', className: 'text', cell: (one) => one.row.after && one.row.after.y.length ? clip(one.row.after.y[0]) : '\u2013' },
      ].filter(Boolean),
      detail: ({ row }) => [el('div', { class: 'small soft' }, 'Problem'), model(textOf(row.p)), row.source && facts([['set', row.source]]), answers('Before', row.before), answers('After', row.after)],
      search: (one) => `${one.row.p}\n${one.row.l}\n${one.row.mode}\n${one.row.source || ''}\n${[one.row.before, one.row.after].flatMap((part) => part ? part.y : []).join('\n')}`,
    });
    redraws.push(() => list.keepOnly((one) => only(one.run)));
    list.draw();
    const hints = runs.map((run, at) => {
      const held = run.held_out;
      if (!held.rows.length) return null;
      const steps = held.after === undefined ? `after step ${held.before} only` : `before is step ${held.before}, after is step ${held.after}`;
      const few = held.shown < held.problems ? `; ${count(held.shown)} of ${count(held.problems)} are shown, spread evenly` : '';
      return el('div', {}, several && [runName(at), ': '], sentence(steps + few));
    });
    return section('held-out', 'Held-out answers', [hints, el('div', {}, 'Scores are means over the samples of a problem. Click a row for the whole of it.')], el('div', { class: 'tools' }, list.box, list.where, list.pagers), list.node);
  };

  const eventsSection = () => {
    const counts = (run) => {
      const ledger = run.ledger, company = run.company;
      // None of a run that does not count it.
      const sum = (name) => run.metrics[name] ? run.metrics[name].sum : null;
      const evaluates = Object.keys(run.metrics).some((name) => name.startsWith('eval/'));
      return [
        ['samples without a score', sum('reward/missing')],
        ['held-out problems without a score', evaluates ? sumOf(run, 'eval/missing') + sumOf(run, 'eval/greedy_missing') : null],
        ['optimiser steps skipped', sum('policy/skipped_steps')],
        ['optimiser steps of the critic skipped', sum('value/skipped_steps')],
        ['updates with the alarm', sum('alarm/reward_up_kl_high')],
        ['groups filtered by their score', sum('reward/filtered_groups')],
        ['groups trained on', ledger ? ledger.groups : null],
        ['groups replaced', ledger ? ledger.replaced : null],
        ['damaged ledger records', ledger ? ledger.damaged : null],
        ['nodes lost', company ? company.lost.length : null],
        ['losses of roles', company ? company.parts.reduce((sum, part) => sum + (part.losses || 0), 0) : null],
        ['lines of the log that tell of faults', run.log.all ? run.log.lines.filter((line) => line.fault).length : null],
        ['batches of failed steps', run.failed_steps.length ? run.failed_steps.join(', ') : null],
      ];
    };
    const all = runs.map(counts), rows = all[0].map(([name], at) => [name, all.map((own) => own[at][1])])
      .filter(([, values]) => values.some((value) => value !== null));
    const summary = el('div', { class: several ? 'scroll' : 'scroll fit' }, el('table', {},
      several && el('thead', {}, el('tr', {}, el('th', {}, ''), runs.map((run, at) => el('th', { class: 'number' }, runName(at))))),
      el('tbody', {}, rows.length ? rows.map(([name, values]) => el('tr', {}, el('td', {}, name),
        values.map((value) => el('td', { class: 'number' }, value === null ? '\u2013' : typeof value === 'number' ? count(value) : textOf(value)))))
        : el('tr', {}, el('td', { class: 'soft' }, 'Nothing is recorded.')))));
    const lines = runs.flatMap((run, at) => run.log.lines.map((line) => ({ run: at, line })));
    const list = table({
      rows: lines, empty: lines.length ? 'Nothing fits.' : 'No lines.',
      columns: [
        several && { name: 'run', value: (one) => runs[one.run].name, cell: (one) => runName(one.run), className: 'nowrap' },
        { name: 'time', value: (one) => one.line.t, cell: (one) => textOf(one.line.t.replace('T', ' ').slice(0, 23)), className: 'nowrap' },
        { name: 'message', cell: (one) => textOf(one.line.text), className: 'text wide' },
      ].filter(Boolean),
      rowClass: (one) => one.line.fault ? 'fault' : '',
      search: (one) => `${one.line.t} ${one.line.text}`,
    });
    const faults = el('input', { type: 'checkbox', onchange: () => apply() });
    const apply = () => list.keepOnly((one) => only(one.run) && (!faults.checked || one.line.fault));
    redraws.push(apply);
    list.draw();
    list.node.classList.add('log');
    const left = runs.map((run, at) => run.log.left_out > 0 && el('div', {}, several && [runName(at), ': '],
      `${count(run.log.left_out)} of ${count(run.log.all)} lines are left out, of the middle.`));
    const lost = runs.map((run, at) => run.company && run.company.lost.map((node) => el('details', { class: 'group' },
      el('summary', {}, several && [runName(at), ' '], 'lost: ', textOf(node.name || ''), ' (', textOf(node.host || ''), '): ', textOf(node.cause || '')),
      model(textOf(node.last_lines.join('\n'))))));
    const logs = runs.map((run, at) => run.node_logs.map((log) => el('details', { class: 'group' },
      el('summary', {}, several && [runName(at), ' '], textOf(log.name), ` (${bytes(log.bytes)})`), model(textOf(log.end)))));
    return section('events', 'Events and faults', left, summary, el('h3', {}, 'troupe.log'),
      el('div', { class: 'tools' }, list.box, el('label', {}, faults, ' faults only (judged by their words)'), list.where, list.pagers), list.node,
      lost, logs.some((own) => own.length) && [el('h3', {}, 'Ends of the nodes\u2019 logs'), logs]);
  };

  const configSection = () => {
    const keys = [];
    const values = runs.map((run) => new Map(run.config.map(([key, value, origin]) => [key, { value, origin }])));
    const known = new Set();
    for (const run of runs) for (const [key] of run.config) if (!known.has(key)) { known.add(key); keys.push(key); }
    // Among the runs that have it: a method does not read the keys of others.
    const differs = (key) => new Set(values.filter((own) => own.has(key)).map((own) => own.get(key).value)).size > 1;
    const set = (key) => values.some((own) => own.has(key) && own.get(key).origin);
    const rows = keys.map((key) => ({ key, differs: several && differs(key), set: set(key) }));
    const list = table({
      rows, empty: 'No configuration.',
      columns: [
        { name: 'key', className: 'key', value: (row) => row.key, cell: (row) => textOf(row.key) },
        ...runs.map((run, at) => ({ name: several ? runName(at) : 'value', className: 'key text', cell: (row) => {
          const own = values[at].get(row.key);
          return own ? [textOf(own.value), own.origin && el('div', { class: 'soft small' }, textOf(own.origin))] : '\u2013';
        } })),
      ],
      rowClass: (row) => row.differs && which.value !== 'differs' ? 'differs' : '',
      search: (row) => `${row.key} ${values.map((own) => own.has(row.key) ? own.get(row.key).value : '').join(' ')}`,
    });
    const which = el('select', { 'aria-label': 'Keys', onchange: () => apply() },
      several && el('option', { value: 'differs' }, 'keys that differ'), el('option', { value: 'set' }, 'keys that were set'), el('option', { value: 'all' }, 'all keys'));
    const apply = () => list.keepOnly((row) => which.value === 'all' || row[which.value]);
    apply();
    return section('configuration', 'Configuration', null, el('div', { class: 'tools' }, list.box, which, list.where, list.pagers), list.node);
  };

  // ---- the page ----
  const main = el('main', {}, overview(), curvesSection(), timeSection(), rolloutsSection(), heldOutSection(), eventsSection(), configSection());
  const head = el('header', {}, el('h1', {}, several ? `${runs.length} runs` : textOf(runs[0].name)),
    el('div', { class: 'soft small' }, `Troupe report of ${moment(data.made_s)}`), several && legend());
  const nav = el('nav', {}, el('div', {}, sections.map(([id, title]) => el('a', { href: `#${id}` }, title))));
  document.getElementById('report').append(head, nav, main,
    el('footer', {}, `Written by troupe ${plain(data.program)}. This page needs no network and holds everything that it shows.`));
  document.title = `${several ? `${runs.length} runs` : plain(runs[0].name)} - Troupe report`;
  document.documentElement.dataset.ready = String(Math.round(performance.now()));  // ms
})();
