// Begins with what the lineage is of in the middle of the picture; without this it begins at its left.

const graph = document.querySelector(".graph");
const here = graph?.querySelector(".here");
if (here) {
  const box = here.getBoundingClientRect();
  const frame = graph.getBoundingClientRect();
  graph.scrollLeft += box.left + box.width / 2 - (frame.left + frame.width / 2);
  graph.scrollTop += box.top + box.height / 2 - (frame.top + frame.height / 2);
}
