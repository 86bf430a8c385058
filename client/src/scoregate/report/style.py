"""The look of the page; the colours are the playground's."""

STYLE = """
:root { color-scheme: light dark; --paper: #f6f6f3; --card: #fff; --ink: #1b1d20; --quiet: #575c64;
  --line: #e2e2dc; --accent: #0b6e5f; --track: #e7e7e2; --bad: #ad3420; }
@media (prefers-color-scheme: dark) { :root { --paper: #121315; --card: #1b1d20; --ink: #ececea;
  --quiet: #a4a8af; --line: #2e3136; --accent: #56c8b2; --track: #33363b; --bad: #f29683; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 70rem; padding: 1.5rem 1rem 4rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  overflow-wrap: anywhere; -webkit-text-size-adjust: 100%; }
h1 { margin: 0 0 1rem; font-size: 1.5rem; font-weight: 650; }
h2 { margin: 0 0 .75rem; font-size: 1.15rem; font-weight: 650; }
h3 { margin: 1rem 0 .5rem; font-size: 1rem; font-weight: 600; }
section { margin: 1.25rem 0; padding: 1.25rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 12px; }
a { color: var(--accent); text-underline-offset: .2em; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: 1rem 0; padding: 0; list-style: none; }
small, .quiet, .none, dt, caption { color: var(--quiet); }
.quiet { margin: .5rem 0 0; font-size: .87rem; max-width: 60rem; }
.bad { color: var(--bad); margin: .25rem 0; }
dl { display: grid; grid-template-columns: auto 1fr; gap: .15rem 1rem; margin: .5rem 0; }
dd { margin: 0; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; margin: .5rem 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { padding: .25rem 0; text-align: left; font-weight: 600; }
th, td { padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: middle; }
th { font-weight: 500; }
.matrix th { min-width: 5rem; }
thead th { color: var(--quiet); font-size: .85rem; }
.bars { width: 100%; table-layout: fixed; }
.bars div { display: flex; flex-wrap: wrap; align-items: center; gap: .1rem .75rem; }
.bars div span { flex: 1 1 9rem; }
.bars div svg { flex: 3 1 6rem; min-width: 0; }
.bars th:nth-child(2) { width: 6rem; }
.bars th:nth-child(3) { width: 10rem; }
.bars th:nth-child(n+4) { width: 5rem; }
@media (max-width: 44rem) { .bars { font-size: .87rem; } .bars th, .bars td { padding-right: .4rem; }
  .bars th:nth-child(2) { width: 3.6rem; } .bars th:nth-child(3) { width: 4.8rem; }
  .bars th:nth-child(n+4) { width: 2.7rem; } }
.bar { display: block; width: 100%; height: .9rem; overflow: visible; }
.bar .track { fill: var(--track); }
.bar .fill { fill: var(--accent); opacity: .55; }
.bar path, .scatter path { fill: none; stroke: var(--ink); stroke-width: 1.5;
  vector-effect: non-scaling-stroke; }
.scatter path { stroke: var(--quiet); stroke-width: 1; }
.scatter { display: block; width: 100%; height: auto; }
.scatter circle { fill: var(--accent); fill-opacity: .5; }
.scatter text { fill: var(--quiet); font-size: 11px; }
.pair { display: flex; flex-wrap: wrap; gap: 0 3rem; }
.pair > * { flex: 1 1 20rem; min-width: 0; }
.matrix td { white-space: nowrap; }
.better { color: var(--accent); }
.worse { color: var(--bad); }
.plots, .gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(15rem, 100%), 1fr));
  gap: 1rem; }
.plots { grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr)); }
figure { margin: 0; padding: .75rem; border: 1px solid var(--line); border-radius: 8px; font-size: .92rem; }
.picture { position: relative; width: fit-content; margin: 0 auto .5rem; }
.picture img { display: block; max-width: 100%; max-height: 16rem; }
.picture svg { position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible; }
.picture rect { fill: none; stroke: var(--box); stroke-width: 2; vector-effect: non-scaling-stroke; }
.picture text { fill: var(--box); paint-order: stroke; stroke: #000; stroke-width: .2em; font-weight: 700; }
.box0 { --box: #4be3c4; } .box1 { --box: #ffb347; } .box2 { --box: #7db8ff; }
.box3 { --box: #ff8fb8; } .box4 { --box: #d6e34b; } .box5 { --box: #d0a2ff; }
ol, ul { margin: .25rem 0; padding-left: 1.25rem; }
b { font-weight: 600; }
@media print { body { background: none; } section { break-inside: avoid; border: 0; padding: 0; } }
"""
