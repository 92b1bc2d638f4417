// Elements of the page. Text goes in as text, never as HTML: clients name themselves.

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function put(parent, ...children) {
  parent.append(...children);
  return children[0];
}

// A table without rows: columns are [title, name, words, ...].
function makeTable(columns) {
  const table = make("table");
  const head = put(put(table, make("thead")), make("tr"));
  for (const [title, name, words] of columns) {
    const cell = put(head, make("th", name, title));
    cell.scope = "col";
    cell.title = words;
  }
  put(table, make("tbody"));
  return table;
}

// A row of such a table, with a cell for each column.
function makeRow(columns) {
  const row = make("tr");
  for (const [title, name] of columns) put(row, make("td", name)).dataset.label = title;
  return row;
}

// Only what has changed is touched: a screen reader and a selection stay where they are.
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// A figure of /stats: data-key says which, data-value what it is exactly.
function setFigure(element, key, value, write) {
  element.dataset.key = key;
  element.dataset.value = JSON.stringify(value === undefined ? null : value);
  setText(element, write(value));
}

// A list of figures, each with its name: rows are [name, key, value, write]. A figure that the page
// works out itself has no key.
function setFigures(list, rows) {
  while (list.children.length < rows.length) {
    const pair = make("div");
    pair.append(make("dt"), make("dd"));
    list.append(pair);
  }
  rows.forEach(([name, key, value, write], i) => {
    const [term, figure] = list.children[i].children;
    setText(term, name);
    if (key === null) setText(figure, write(value));
    else setFigure(figure, key, value, write);
  });
}

// The children of `parent`, one for each item, kept by key so that none is made twice. `leave`, where
// there is one, is called with each that goes.
function setChildren(parent, items, keyOf, create, update, leave) {
  const known = new Map([...parent.children].map(child => [child.dataset.id, child]));
  const wanted = items.map(item => {
    const id = String(keyOf(item));
    const child = known.get(id) || put(parent, create(item));
    child.dataset.id = id;
    update(child, item);
    return child;
  });
  for (const [id, child] of known) {
    if (wanted.includes(child)) continue;
    if (leave) leave(child);
    child.remove();
  }
  wanted.forEach((child, i) => {
    if (parent.children[i] !== child) parent.insertBefore(child, parent.children[i] || null);
  });
}

function card(parent, title, className) {
  const box = put(parent, make("section", "card " + (className || "")));
  if (title) {
    const heading = put(box, make("h3", "", title));
    box.setAttribute("aria-label", heading.textContent);
  }
  return box;
}

function percent(share) {
  return (100 * Math.min(1, Math.max(0, share || 0))).toFixed(2) + "%";
}
