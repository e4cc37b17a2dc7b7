// Mandelbrot: the set in a square of points. The result joins the bits of all points, eight in a
// byte, by exclusive or.
"use strict";
const rounds = 16;
function escapes(cr, ci) {
    let zrzr = 0.0;
    let zi = 0.0;
    let zizi = 0.0;
    let z = 0;
    while (z < 50) {
        const zr = zrzr - zizi + cr;
        zi = 2.0 * zr * zi + ci;
        zrzr = zr * zr;
        zizi = zi * zi;
        if (zrzr + zizi > 4.0) { return 1; }
        z = z + 1;
    }
    return 0;
}
function mandelbrot(size) {
    let sum = 0;
    let bits = 0;
    let count = 0;
    for (let y = 0; y < size; y++) {
        const ci = 2.0 * y / size - 1.0;
        for (let x = 0; x < size; x++) {
            bits = bits * 2 + escapes(2.0 * x / size - 1.5, ci);
            count = count + 1;
            if (count === 8) {
                sum = sum ^ bits;
                bits = 0;
                count = 0;
            } else if (x === size - 1) {
                while (count < 8) {
                    bits = bits * 2;
                    count = count + 1;
                }
                sum = sum ^ bits;
                bits = 0;
                count = 0;
            }
        }
    }
    return sum;
}
for (let round = 0; round < rounds; round++) {
    if (mandelbrot(500) !== 191) { throw new Error("the set is another"); }
}
console.log(mandelbrot(1));
console.log(mandelbrot(100));
