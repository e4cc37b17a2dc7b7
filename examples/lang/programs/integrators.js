// Four integrators of a function that they call as a value, and the same loops with the call of one
// function by its name. `wicker integrators` measures all that is above the last part.
"use strict";
function decay(t, y) { return t - 2 * y; }
function wave(t, y) { return y * (1 - y) - 0.25 * t; }
function well(t, y) {
    const off = y - 3;
    return off * off + t;
}
function euler(f, y, n) {
    const h = 1 / n;
    let t = 0;
    for (let i = 0; i < n; i++) {
        y = y + h * f(t, y);
        t = t + h;
    }
    return y;
}
function midpoint(f, y, n) {
    const h = 1 / n;
    let t = 0;
    for (let i = 0; i < n; i++) {
        y = y + h * f(t + 0.5 * h, y + 0.5 * h * f(t, y));
        t = t + h;
    }
    return y;
}
function runge_kutta(f, y, n) {
    const h = 1 / n;
    let t = 0;
    for (let i = 0; i < n; i++) {
        const a = f(t, y);
        const b = f(t + 0.5 * h, y + 0.5 * h * a);
        const c = f(t + 0.5 * h, y + 0.5 * h * b);
        const d = f(t + h, y + h * c);
        y = y + h / 6 * (a + 2 * b + 2 * c + d);
        t = t + h;
    }
    return y;
}
// Simulated annealing: a worse place is taken with a chance that falls with the temperature. The
// chance is a rational function in the place of an exponential.
function anneal(f, y, n) {
    let seed = 42;
    let heat = 1;
    let least = f(0, y);
    for (let i = 0; i < n; i++) {
        seed = (seed * 3877 + 29573) % 139968;
        const there = y + (seed / 69984 - 1);
        const level = f(0, there);
        seed = (seed * 3877 + 29573) % 139968;
        const worse = (level - least) / heat;
        if (worse <= 0 || seed / 139968 * (1 + worse * (1 + worse)) < 1) {
            y = there;
            least = level;
        }
        heat = heat * 0.9999 + 0.0001;
    }
    return y;
}
function direct_euler(f, y, n) {
    const h = 1 / n;
    let t = 0;
    for (let i = 0; i < n; i++) {
        y = y + h * decay(t, y);
        t = t + h;
    }
    return y;
}
function direct_midpoint(f, y, n) {
    const h = 1 / n;
    let t = 0;
    for (let i = 0; i < n; i++) {
        y = y + h * decay(t + 0.5 * h, y + 0.5 * h * decay(t, y));
        t = t + h;
    }
    return y;
}
function direct_runge_kutta(f, y, n) {
    const h = 1 / n;
    let t = 0;
    for (let i = 0; i < n; i++) {
        const a = decay(t, y);
        const b = decay(t + 0.5 * h, y + 0.5 * h * a);
        const c = decay(t + 0.5 * h, y + 0.5 * h * b);
        const d = decay(t + h, y + h * c);
        y = y + h / 6 * (a + 2 * b + 2 * c + d);
        t = t + h;
    }
    return y;
}
function direct_anneal(f, y, n) {
    let seed = 42;
    let heat = 1;
    let least = decay(0, y);
    for (let i = 0; i < n; i++) {
        seed = (seed * 3877 + 29573) % 139968;
        const there = y + (seed / 69984 - 1);
        const level = decay(0, there);
        seed = (seed * 3877 + 29573) % 139968;
        const worse = (level - least) / heat;
        if (worse <= 0 || seed / 139968 * (1 + worse * (1 + worse)) < 1) {
            y = there;
            least = level;
        }
        heat = heat * 0.9999 + 0.0001;
    }
    return y;
}
// The last part. The function changes between calls, and in the middle of a loop.
function switching(f, g, y, n) {
    const h = 1 / n;
    let t = 0;
    for (let i = 0; i < n; i++) {
        if (i === Math.floor(n / 2)) { f = g; }
        y = y + h * f(t, y);
        t = t + h;
    }
    return y;
}
function millionths(x) { return Math.floor(x * 1000000); }
const functions = [decay, wave, well, decay];
const integrators = [euler, midpoint, runge_kutta, anneal];
for (let i = 0; i < 4; i++) {
    for (let f = 0; f < 4; f++) {
        console.log(i, f, millionths(integrators[i](functions[f], 2.5, 20000)));
    }
}
for (let f = 0; f < 3; f++) {
    console.log(millionths(switching(functions[f], functions[f + 1], 2.5, 40000)));
}
const direct = [direct_euler, direct_midpoint, direct_runge_kutta, direct_anneal];
const [e, m, r, a] = direct.map((integrator) => millionths(integrator(null, 2.5, 20000)));
console.log(e, m);
console.log(r, a);
