// CD: detects collisions of planes in flight. The result is the number of collisions in 200 frames.
"use strict";
const rounds = 8;
// Trees that are balanced by red and black nodes.
function tree(compare) { return {root: null, compare}; }
function put(tree, key, value) {
    const compare = tree.compare;
    let parent = null;
    let at = tree.root;
    let order = 0;
    while (at !== null) {
        parent = at;
        order = compare(key, at.key);
        if (order === 0) {
            const old = at.value;
            at.value = value;
            return old;
        }
        if (order < 0) {
            at = at.left;
        } else {
            at = at.right;
        }
    }
    const made = {key, value, left: null, right: null, parent, isRed: true};
    if (parent === null) {
        tree.root = made;
    } else if (order < 0) {
        parent.left = made;
    } else {
        parent.right = made;
    }
    balance(tree, made);
    return null;
}
function balance(tree, made) {
    let x = made;
    while (x !== tree.root && x.parent.isRed) {
        const isLeft = x.parent === x.parent.parent.left;
        let uncle = x.parent.parent.left;
        if (isLeft) { uncle = x.parent.parent.right; }
        if (uncle !== null && uncle.isRed) {
            x.parent.isRed = false;
            uncle.isRed = false;
            x = x.parent.parent;
            x.isRed = true;
        } else {
            if (isLeft && x === x.parent.right) {
                x = x.parent;
                rotateLeft(tree, x);
            } else if (!isLeft && x === x.parent.left) {
                x = x.parent;
                rotateRight(tree, x);
            }
            x.parent.isRed = false;
            x.parent.parent.isRed = true;
            if (isLeft) {
                rotateRight(tree, x.parent.parent);
            } else {
                rotateLeft(tree, x.parent.parent);
            }
        }
    }
    tree.root.isRed = false;
}
function replace(tree, x, y) {
    y.parent = x.parent;
    if (x.parent === null) {
        tree.root = y;
    } else if (x === x.parent.left) {
        x.parent.left = y;
    } else {
        x.parent.right = y;
    }
    x.parent = y;
}
function rotateLeft(tree, x) {
    const y = x.right;
    x.right = y.left;
    if (y.left !== null) { y.left.parent = x; }
    replace(tree, x, y);
    y.left = x;
}
function rotateRight(tree, x) {
    const y = x.left;
    x.left = y.right;
    if (y.right !== null) { y.right.parent = x; }
    replace(tree, x, y);
    y.right = x;
}
function get(tree, key) {
    const compare = tree.compare;
    let at = tree.root;
    while (at !== null) {
        const order = compare(key, at.key);
        if (order === 0) { return at.value; }
        if (order < 0) {
            at = at.left;
        } else {
            at = at.right;
        }
    }
    return null;
}
// Calls a function with each node, in order.
function each(tree, action) {
    let at = tree.root;
    while (at !== null && at.left !== null) { at = at.left; }
    while (at !== null) {
        action(at);
        if (at.right !== null) {
            at = at.right;
            while (at.left !== null) { at = at.left; }
        } else {
            let child = at;
            at = at.parent;
            while (at !== null && child === at.right) {
                child = at;
                at = at.parent;
            }
        }
    }
}
// Vectors.
function compareNumbers(a, b) {
    if (a < b) { return -1; }
    if (a > b) { return 1; }
    return 0;
}
function point(x, y) { return {x, y}; }
function comparePoints(a, b) {
    const order = compareNumbers(a.x, b.x);
    if (order !== 0) { return order; }
    return compareNumbers(a.y, b.y);
}
function vector(x, y, z) { return {x, y, z}; }
function plus(a, b) { return vector(a.x + b.x, a.y + b.y, a.z + b.z); }
function minus(a, b) { return vector(a.x - b.x, a.y - b.y, a.z - b.z); }
function times(a, n) { return vector(a.x * n, a.y * n, a.z * n); }
function dot(a, b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
// The sine by its series.
function sine(angle) {
    const x = angle - Math.floor(angle / 6.283185307179586) * 6.283185307179586;
    let term = x;
    let sum = x;
    for (let i = 1; i < 20; i++) {
        term = -term * x * x / (2 * i * (2 * i + 1));
        sum = sum + term;
    }
    return sum;
}
function frame(planes, time) {
    const list = [];
    const cosine = sine(time + 1.5707963267948966);
    for (let i = 0; i < planes; i++) {
        let place = sine(time) * 2 + (i - 1) * 3;
        if (i % 2 === 0) { place = cosine * 2 + i * 3; }
        list.push({sign: {number: i}, position: vector(time, place, 10.0)});
    }
    return list;
}
// A motion of a plane from one frame to the next.
function compareSigns(a, b) { return compareNumbers(a.number, b.number); }
function crossing(a, b) {
    const from = minus(a.from, b.from);
    const speed = minus(minus(a.to, a.from), minus(b.to, b.from));
    const square = dot(speed, speed);
    if (square === 0) {
        if (dot(from, from) <= 1) { return times(plus(a.from, b.from), 0.5); }
        return null;
    }
    const linear = 2 * dot(from, speed);
    const constant = dot(from, from) - 1;
    const discriminant = linear * linear - 4 * square * constant;
    if (discriminant < 0) { return null; }
    const first = (-linear - Math.sqrt(discriminant)) / (2 * square);
    const last = (-linear + Math.sqrt(discriminant)) / (2 * square);
    if (first > 1 || last < 0) { return null; }
    let at = first;
    if (first < 0) { at = 0; }
    const place = times(plus(moved(a, at), moved(b, at)), 0.5);
    if (isInside(place.x, 1000) && isInside(place.y, 1000) && isInside(place.z, 10)) {
        return place;
    }
    return null;
}
function moved(motion, time) {
    return plus(motion.from, times(minus(motion.to, motion.from), time));
}
function isInside(n, most) { return n >= 0 && n <= most; }
// Space has columns, two units wide. A map leads from a column to the motions that touch it.
function corner(n) { return Math.floor(n / 2) * 2; }
function touches(low, high) {
    return low <= 1 && 1 <= high || low <= 0 && 0 <= high || 0 <= low && high <= 1;
}
function isNear(at, from) { return at <= from + 0.5 && from - 0.5 <= at + 2; }
function isIn(column, motion) {
    if (!isInside(column.x, 1000) || !isInside(column.y, 1000)) { return false; }
    const x = motion.from.x;
    const dx = motion.to.x - x;
    const y = motion.from.y;
    const dy = motion.to.y - y;
    let lowX = (column.x - 0.5 - x) / dx;
    let highX = (column.x + 2.5 - x) / dx;
    if (dx < 0) {
        const swapped = lowX;
        lowX = highX;
        highX = swapped;
    }
    let lowY = (column.y - 0.5 - y) / dy;
    let highY = (column.y + 2.5 - y) / dy;
    if (dy < 0) {
        const swapped = lowY;
        lowY = highY;
        highY = swapped;
    }
    if (!(dx === 0 && isNear(column.x, x) || touches(lowX, highX))) { return false; }
    if (!(dy === 0 && isNear(column.y, y) || touches(lowY, highY))) { return false; }
    return dx === 0 || dy === 0 || lowY <= highX && highX <= highY || lowY <= lowX
        && lowX <= highY || lowX <= lowY && highY <= highX;
}
function draw(columns, seen, column, motion) {
    if (!isIn(column, motion) || put(seen, column, true)) { return null; }
    let motions = get(columns, column);
    if (motions === null) {
        motions = [];
        put(columns, column, motions);
    }
    motions.push(motion);
    for (let i = 0; i < 3; i++) {
        for (let j = 0; j < 3; j++) {
            if (i !== 1 || j !== 1) {
                draw(columns, seen, point(column.x + i * 2 - 2, column.y + j * 2 - 2), motion);
            }
        }
    }
}
function crowded(motions) {
    const columns = tree(comparePoints);
    for (let i = 0; i < motions.length; i++) {
        const from = motions[i].from;
        draw(columns, tree(comparePoints), point(corner(from.x), corner(from.y)), motions[i]);
    }
    const lists = [];
    each(columns, (node) => { if (node.value.length > 1) { lists.push(node.value); } });
    return lists;
}
// The detector has the last position of each plane.
function motions(detector, frame) {
    const list = [];
    const seen = tree(compareSigns);
    for (let i = 0; i < frame.length; i++) {
        const plane = frame[i];
        let old = put(detector.positions, plane.sign, plane.position);
        if (old === null) { old = plane.position; }
        put(seen, plane.sign, true);
        list.push({sign: plane.sign, from: old, to: plane.position});
    }
    const kept = tree(compareSigns);
    let gone = 0;
    each(detector.positions, (node) => {
        if (get(seen, node.key)) {
            put(kept, node.key, node.value);
        } else {
            gone = gone + 1;
        }
    });
    if (gone > 0) { detector.positions = kept; }
    return list;
}
function collisions(detector, frame) {
    const found = [];
    const lists = crowded(motions(detector, frame));
    for (let k = 0; k < lists.length; k++) {
        const list = lists[k];
        for (let i = 0; i < list.length; i++) {
            for (let j = i + 1; j < list.length; j++) {
                const place = crossing(list[i], list[j]);
                if (place !== null) {
                    found.push({first: list[i].sign, second: list[j].sign, place});
                }
            }
        }
    }
    return found;
}
function benchmark(planes) {
    const detector = {positions: tree(compareSigns)};
    let found = 0;
    for (let i = 0; i < 200; i++) {
        found = found + collisions(detector, frame(planes, i / 10)).length;
    }
    return found;
}
for (let round = 0; round < rounds; round++) {
    if (benchmark(100) !== 4305) { throw new Error("the number of collisions is another"); }
}
console.log(benchmark(10));
