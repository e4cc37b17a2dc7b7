// Havlak: finds the loops of a flow graph, and how they nest (Paul Havlak, Nesting of reducible and
// irreducible loops). The results are the numbers of loops and of blocks.
"use strict";
const rounds = 180;
// A dictionary whose keys have a field `hash`, and are equal if they are the same object.
function filled(length, value) {
    const list = [];
    for (let i = 0; i < length; i++) { list.push(value); }
    return list;
}
function dictionary() { return {buckets: filled(16, false), capacity: 16, size: 0}; }
function find(map, key) {
    let entry = map.buckets[key.hash % map.capacity];
    while (entry && entry.key !== key) { entry = entry.next; }
    return entry;
}
function put(map, key, value) {
    const entry = find(map, key);
    if (entry) {
        entry.value = value;
        return null;
    }
    const bucket = key.hash % map.capacity;
    map.buckets[bucket] = {key, value, next: map.buckets[bucket]};
    map.size = map.size + 1;
    if (map.size > map.capacity) { grow(map); }
}
function grow(map) {
    const old = map.buckets;
    const length = map.capacity;
    map.capacity = length * 2;
    map.buckets = filled(map.capacity, false);
    for (let i = 0; i < length; i++) {
        let entry = old[i];
        while (entry) {
            const next = entry.next;
            const bucket = entry.key.hash % map.capacity;
            entry.next = map.buckets[bucket];
            map.buckets[bucket] = entry;
            entry = next;
        }
    }
}
// A set is a list without duplicates.
function has(set, item) {
    for (let i = 0; i < set.length; i++) { if (set[i] === item) { return true; } }
    return false;
}
function add(set, item) {
    if (!has(set, item)) { set.push(item); }
}
// The graph.
function block(graph, name) {
    if (name === graph.length) { graph.push({hash: name, from: [], to: []}); }
    return graph[name];
}
function connect(graph, from, to) {
    const source = block(graph, from);
    const target = block(graph, to);
    source.to.push(target);
    target.from.push(source);
}
function diamond(graph, start) {
    connect(graph, start, start + 1);
    connect(graph, start, start + 2);
    connect(graph, start + 1, start + 3);
    connect(graph, start + 2, start + 3);
    return start + 3;
}
function straight(graph, start, length) {
    for (let i = 0; i < length; i++) { connect(graph, start + i, start + i + 1); }
    return start + length;
}
function baseLoop(graph, from) {
    const header = straight(graph, from, 1);
    const first = diamond(graph, header);
    const inner = straight(graph, first, 1);
    const second = diamond(graph, inner);
    const footer = straight(graph, second, 1);
    connect(graph, second, inner);
    connect(graph, first, header);
    connect(graph, footer, from);
    return straight(graph, footer, 1);
}
function simpleGraph() {
    const graph = [];
    block(graph, 0);
    baseLoop(graph, 0);
    connect(graph, 0, 2);
    return graph;
}
function largeGraph(graph) {
    let n = 2;
    for (let i = 0; i < 10; i++) {
        block(graph, n + 1);
        connect(graph, 2, n + 1);
        n = n + 1;
        for (let j = 0; j < 10; j++) {
            const top = n;
            n = straight(graph, n, 1);
            for (let k = 0; k < 5; k++) { n = baseLoop(graph, n); }
            const bottom = straight(graph, n, 1);
            connect(graph, n, top);
            n = bottom;
        }
        connect(graph, n, 1);
    }
}
// The loops.
function loop(structure, header, isReducible) {
    const made = {header, blocks: [], children: [], parent: null, isReducible,
        number: structure.length, nesting: 0, depth: 0};
    if (header !== null) { add(made.blocks, header); }
    structure.push(made);
    return made;
}
function structure() {
    const loops = [];
    loop(loops, null, true);
    return loops;
}
function setParent(loop, parent) {
    loop.parent = parent;
    add(parent.children, loop);
}
function nest(loop, depth) {
    loop.depth = depth;
    for (let i = 0; i < loop.children.length; i++) {
        const child = loop.children[i];
        nest(child, depth + 1);
        if (child.nesting >= loop.nesting) { loop.nesting = child.nesting + 1; }
    }
}
function nestAll(loops) {
    for (let i = 1; i < loops.length; i++) {
        if (loops[i].parent === null) { setParent(loops[i], loops[0]); }
    }
    nest(loops[0], 0);
}
// A node of sets that are joined (union and find).
function node(block, number) {
    const made = {parent: null, block, number, loop: null};
    made.parent = made;
    return made;
}
function root(node) {
    const passed = [];
    while (node !== node.parent) {
        if (node.parent !== node.parent.parent) { passed.push(node); }
        node = node.parent;
    }
    for (let i = 0; i < passed.length; i++) { passed[i].parent = node; }
    return node;
}
// The search. A block that the walk has not visited has the number -1.
function walk(search, block, number) {
    search.nodes[number] = node(block, number);
    put(search.numbers, block, number);
    let last = number;
    for (let i = 0; i < block.to.length; i++) {
        const target = block.to[i];
        if (find(search.numbers, target).value === -1) { last = walk(search, target, last + 1); }
    }
    search.last[number] = last;
    return last;
}
function isAncestor(search, w, v) { return w <= v && v <= search.last[w]; }
function identifyEdges(search, w) {
    const from = search.nodes[w].block.from;
    for (let i = 0; i < from.length; i++) {
        const v = find(search.numbers, from[i]).value;
        if (v !== -1) {
            if (isAncestor(search, w, v)) {
                search.back[w].push(v);
            } else {
                add(search.other[w], v);
            }
        }
    }
}
function searching(graph) {
    const size = graph.length;
    const search = {numbers: dictionary(), nodes: filled(size, false), last: filled(size, 0),
        kinds: filled(size, "no header"), headers: filled(size, 0), back: [], other: []};
    for (let i = 0; i < size; i++) {
        put(search.numbers, graph[i], -1);
        search.back.push([]);
        search.other.push([]);
    }
    walk(search, graph[0], 0);
    for (let w = 0; w < size; w++) { if (search.nodes[w]) { identifyEdges(search, w); } }
    return search;
}
function heads(search, w, pool) {
    const back = search.back[w];
    for (let i = 0; i < back.length; i++) {
        if (back[i] !== w) {
            pool.push(root(search.nodes[back[i]]));
        } else {
            search.kinds[w] = "self";
        }
    }
}
function body(search, w, pool, todo, x) {
    const other = search.other[x.number];
    for (let i = 0; i < other.length; i++) {
        const y = root(search.nodes[other[i]]);
        if (!isAncestor(search, w, y.number)) {
            search.kinds[w] = "irreducible";
            add(search.other[w], y.number);
        } else if (y.number !== w && !has(pool, y)) {
            todo.push(y);
            pool.push(y);
        }
    }
}
function setLoop(search, w, pool, loop) {
    search.nodes[w].loop = loop;
    for (let i = 0; i < pool.length; i++) {
        const member = pool[i];
        search.headers[member.number] = w;
        member.parent = search.nodes[w];
        if (member.loop !== null) {
            setParent(member.loop, loop);
        } else {
            add(loop.blocks, member.block);
        }
    }
}
function findLoops(graph, loops) {
    const search = searching(graph);
    for (let i = 0; i < graph.length; i++) {
        const w = graph.length - 1 - i;
        if (search.nodes[w]) {
            const pool = [];
            heads(search, w, pool);
            const todo = [];
            for (let k = 0; k < pool.length; k++) { todo.push(pool[k]); }
            if (pool.length > 0) { search.kinds[w] = "reducible"; }
            let done = 0;
            while (done < todo.length) {
                body(search, w, pool, todo, todo[done]);
                done = done + 1;
            }
            if (pool.length > 0 || search.kinds[w] === "self") {
                const isReducible = search.kinds[w] !== "irreducible";
                setLoop(search, w, pool, loop(loops, search.nodes[w].block, isReducible));
            }
        }
    }
}
const graph = simpleGraph();
const loops = structure();
findLoops(graph, loops);
largeGraph(graph);
findLoops(graph, loops);
nestAll(loops);
for (let round = 0; round < rounds; round++) {
    const again = structure();
    findLoops(graph, again);
    nestAll(again);
    if (again.length !== 1602) { throw new Error("the number of loops is another"); }
}
console.log(loops.length);
console.log(graph.length);
