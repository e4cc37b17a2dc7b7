// NBody: planets, which are objects with fields that hold doubles. The results are the energies
// before and after 1000 steps, in millionths.
"use strict";
const rounds = 6000;
function body(x, y, z, vx, vy, vz, mass) {
    return {x, y, z, vx, vy, vz, mass};
}
function advance(bodies, dt) {
    const n = bodies.length;
    for (let i = 0; i < n; i++) {
        const a = bodies[i];
        for (let j = i + 1; j < n; j++) {
            const b = bodies[j];
            const dx = a.x - b.x;
            const dy = a.y - b.y;
            const dz = a.z - b.z;
            const d2 = dx * dx + dy * dy + dz * dz;
            const mag = dt / (d2 * Math.sqrt(d2));
            const ma = a.mass * mag;
            const mb = b.mass * mag;
            a.vx = a.vx - dx * mb;
            a.vy = a.vy - dy * mb;
            a.vz = a.vz - dz * mb;
            b.vx = b.vx + dx * ma;
            b.vy = b.vy + dy * ma;
            b.vz = b.vz + dz * ma;
        }
    }
    for (let i = 0; i < n; i++) {
        const a = bodies[i];
        a.x = a.x + dt * a.vx;
        a.y = a.y + dt * a.vy;
        a.z = a.z + dt * a.vz;
    }
}
function energy(bodies) {
    let e = 0;
    for (let i = 0; i < bodies.length; i++) {
        const a = bodies[i];
        e = e + 0.5 * a.mass * (a.vx * a.vx + a.vy * a.vy + a.vz * a.vz);
        for (let j = i + 1; j < bodies.length; j++) {
            const b = bodies[j];
            const dx = a.x - b.x;
            const dy = a.y - b.y;
            const dz = a.z - b.z;
            e = e - a.mass * b.mass / Math.sqrt(dx * dx + dy * dy + dz * dz);
        }
    }
    return e;
}
function benchmark(steps) {
    const bodies = [];
    bodies.push(body(0, 0, 0, 0, 0.0001, 0, 39.5));
    bodies.push(body(4.8, -1.2, -0.1, 0.6, 2.8, -0.02, 0.04));
    bodies.push(body(8.3, 4.1, -0.4, -1.0, 1.8, 0.008, 0.01));
    bodies.push(body(12.9, -15.1, -0.2, 1.1, 0.9, -0.01, 0.0017));
    bodies.push(body(15.4, -25.9, 0.2, 1.0, 0.6, -0.03, 0.002));
    for (let step = 0; step < steps; step++) { advance(bodies, 0.001); }
    return Math.floor(energy(bodies) * 1000000);
}
const after = benchmark(1000);
for (let round = 0; round < rounds; round++) {
    if (benchmark(1000) !== after) { throw new Error("the energy is another"); }
}
console.log(benchmark(0));
console.log(after);
