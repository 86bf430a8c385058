// Pictures of the demo world, drawn here: lengths are shares of the width, as in docs/demo-world.md.

const RED = "#dc143c", BLUE = "#1e3cc8", YELLOW = "#ffdc00", PURPLE = "#8e44ad", GREEN = "#228b22";
const WIDTH = 480, HEIGHT = 320;

const SHAPES = {
  circle: (draw, r) => draw.arc(0, 0, r, 0, 2 * Math.PI),
  square: (draw, r) => draw.rect(-0.74 * r, -0.74 * r, 1.48 * r, 1.48 * r),
  star: (draw, r) => corners(draw, [r, 0.45 * r], 10),
};

/** A polygon whose corners lie at these radii in turn, the first one on top. */
function corners(draw, radii, many) {
  for (let n = 0; n < many; n++) {
    const angle = (2 * Math.PI * n) / many - Math.PI / 2;
    const r = radii[n % 2];
    draw.lineTo(r * Math.cos(angle), r * Math.sin(angle));
  }
  draw.closePath();
}

const scene = (name, ...things) => ({ name, things });
const LEFT = scene("circle-left.png", ["circle", RED, 0.26, 0.3, 0.15], ["square", BLUE, 0.74, 0.37, 0.15]);
const RIGHT = scene("circle-right.png", ["square", BLUE, 0.27, 0.36, 0.15], ["circle", RED, 0.74, 0.3, 0.15]);
const OTHER = scene("green-circle.png", ["circle", GREEN, 0.27, 0.36, 0.15], ["square", BLUE, 0.73, 0.3, 0.15]);
const STARS = scene(
  "stars.png",
  ["star", YELLOW, 0.19, 0.22, 0.13], ["star", YELLOW, 0.53, 0.46, 0.13], ["star", YELLOW, 0.82, 0.2, 0.13],
);
const STAR = scene("purple-star.png", ["star", PURPLE, 0.72, 0.3, 0.15], ["circle", GREEN, 0.26, 0.36, 0.15]);

/** What is offered: a scene or several, with the prompt that goes with them. */
export const SAMPLES = [
  { mode: "score", prompt: "a red circle left of a blue square", scenes: [LEFT] },
  { mode: "score", prompt: "a green circle left of a purple diamond", scenes: [STAR] },
  { mode: "score", prompt: "three yellow stars", scenes: [STARS] },
  { mode: "rank", prompt: "a red circle left of a blue square", scenes: [RIGHT, LEFT, OTHER] },
];

/** The scene on a canvas. */
export function drawn({ things }, width = WIDTH) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = Math.round((width * HEIGHT) / WIDTH);
  const draw = canvas.getContext("2d");
  draw.fillStyle = "#bebebe";
  draw.fillRect(0, 0, canvas.width, canvas.height);
  for (const [shape, colour, x, y, radius] of things) {
    draw.save();
    draw.translate(x * width, y * width);
    draw.beginPath();
    SHAPES[shape](draw, radius * width);
    draw.fillStyle = colour;
    draw.fill();
    draw.restore();
  }
  return canvas;
}

/** The scene as a PNG file. */
export const file = (scene) =>
  new Promise((resolve) => {
    drawn(scene).toBlob((blob) => resolve(new File([blob], scene.name, { type: "image/png" })), "image/png");
  });
