// Bounce: a hundred balls in a box. The result is how often they hit its walls in 50 steps.
"use strict";
const rounds = 13000;
function next(random) {
    random.seed = (random.seed * 1309 + 13849) % 65536;
    return random.seed;
}
function ball(random) {
    const x = next(random) % 500;
    const y = next(random) % 500;
    const dx = next(random) % 300 - 150;
    const dy = next(random) % 300 - 150;
    return {x, y, dx, dy};
}
function positive(n) {
    if (n < 0) { return -n; }
    return n;
}
function bounce(ball) {
    let hit = false;
    ball.x = ball.x + ball.dx;
    ball.y = ball.y + ball.dy;
    if (ball.x > 500) {
        ball.x = 500;
        ball.dx = 0 - positive(ball.dx);
        hit = true;
    }
    if (ball.x < 0) {
        ball.x = 0;
        ball.dx = positive(ball.dx);
        hit = true;
    }
    if (ball.y > 500) {
        ball.y = 500;
        ball.dy = 0 - positive(ball.dy);
        hit = true;
    }
    if (ball.y < 0) {
        ball.y = 0;
        ball.dy = positive(ball.dy);
        hit = true;
    }
    return hit;
}
function benchmark() {
    const random = {seed: 74755};
    const balls = [];
    for (let i = 0; i < 100; i++) { balls.push(ball(random)); }
    let hits = 0;
    for (let step = 0; step < 50; step++) {
        for (let i = 0; i < balls.length; i++) {
            if (bounce(balls[i])) { hits = hits + 1; }
        }
    }
    return hits;
}
for (let round = 0; round < rounds; round++) {
    if (benchmark() !== 1331) {
        throw new Error("the balls hit the walls another number of times");
    }
}
console.log(benchmark());
