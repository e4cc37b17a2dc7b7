// DeltaBlue: an incremental solver of constraints between variables (Freeman-Benson and Maloney).
// A constraint has a table of methods, as an object of a class would.
"use strict";
const rounds = 1600;
// Strengths: 0 is required, 6 the weakest.
function variable(value) {
    return {value, constraints: [], determined: null, mark: 0, strength: 6, stay: true};
}
function without(list, item) {
    const kept = [];
    for (let i = 0; i < list.length; i++) { if (list[i] !== item) { kept.push(list[i]); } }
    return kept;
}
// Constraints on one variable.
function unaryOutput(c) { return c.out; }
function unarySatisfied(c) { return c.satisfied; }
function unaryUnsatisfy(c) { c.satisfied = false; }
function unaryChoose(c, mark) {
    c.satisfied = c.out.mark !== mark && c.strength < c.out.strength;
}
function unaryMark(c, mark) {}
function unaryKnown(c, mark) { return true; }
function unaryRecalculate(c) {
    c.out.strength = c.strength;
    c.out.stay = !c.methods.isInput;
}
function unaryExecute(c) {}
function unaryAttach(c) { c.out.constraints.push(c); }
function unaryDetach(c) { c.out.constraints = without(c.out.constraints, c); }
function unaryMethods(isInput) {
    return {output: unaryOutput, satisfied: unarySatisfied, unsatisfy: unaryUnsatisfy,
        choose: unaryChoose, mark: unaryMark, known: unaryKnown, recalculate: unaryRecalculate,
        execute: unaryExecute, attach: unaryAttach, detach: unaryDetach, isInput};
}
// Constraints between two variables. The direction is 1 to `b`, -1 to `a`, 0 if not satisfied.
function binaryInput(c) { if (c.direction === 1) { return c.a; } return c.b; }
function binaryOutput(c) { if (c.direction === 1) { return c.b; } return c.a; }
function binarySatisfied(c) { return c.direction !== 0; }
function binaryUnsatisfy(c) { c.direction = 0; }
function binaryChoose(c, mark) {
    let direction = 0;
    const a = c.a;
    const b = c.b;
    if (a.mark === mark) {
        if (b.mark !== mark && c.strength < b.strength) { direction = 1; }
    } else if (b.mark === mark) {
        if (c.strength < a.strength) { direction = -1; }
    } else if (a.strength > b.strength) {
        if (c.strength < a.strength) { direction = -1; }
    } else if (c.strength < b.strength) {
        direction = 1;
    }
    c.direction = direction;
}
function isKnown(v, mark) { return v.mark === mark || v.stay || v.determined === null; }
function equalMark(c, mark) { binaryInput(c).mark = mark; }
function equalKnown(c, mark) { return isKnown(binaryInput(c), mark); }
function equalRecalculate(c) {
    const from = binaryInput(c);
    const to = binaryOutput(c);
    to.strength = from.strength;
    if (c.strength > from.strength) { to.strength = c.strength; }
    to.stay = from.stay;
    if (to.stay) { equalExecute(c); }
}
function equalExecute(c) { binaryOutput(c).value = binaryInput(c).value; }
function equalAttach(c) { c.a.constraints.push(c); c.b.constraints.push(c); }
function equalDetach(c) {
    c.a.constraints = without(c.a.constraints, c);
    c.b.constraints = without(c.b.constraints, c);
}
// b = a * scale + offset
function scaleMark(c, mark) {
    binaryInput(c).mark = mark;
    c.scale.mark = mark;
    c.offset.mark = mark;
}
function scaleKnown(c, mark) {
    return isKnown(binaryInput(c), mark) && isKnown(c.scale, mark) && isKnown(c.offset, mark);
}
function scaleRecalculate(c) {
    const from = binaryInput(c);
    const to = binaryOutput(c);
    to.strength = from.strength;
    if (c.strength > from.strength) { to.strength = c.strength; }
    to.stay = from.stay && c.scale.stay && c.offset.stay;
    if (to.stay) { scaleExecute(c); }
}
function scaleExecute(c) {
    if (c.direction === 1) {
        c.b.value = c.a.value * c.scale.value + c.offset.value;
    } else {
        c.a.value = Math.floor((c.b.value - c.offset.value) / c.scale.value);
    }
}
function scaleAttach(c) {
    equalAttach(c);
    c.scale.constraints.push(c);
    c.offset.constraints.push(c);
}
function scaleDetach(c) {
    equalDetach(c);
    c.scale.constraints = without(c.scale.constraints, c);
    c.offset.constraints = without(c.offset.constraints, c);
}
const stays = unaryMethods(false);
const edits = unaryMethods(true);
const equals = {output: binaryOutput, satisfied: binarySatisfied, unsatisfy: binaryUnsatisfy,
    choose: binaryChoose, mark: equalMark, known: equalKnown, recalculate: equalRecalculate,
    execute: equalExecute, attach: equalAttach, detach: equalDetach, isInput: false};
const scales = {output: binaryOutput, satisfied: binarySatisfied, unsatisfy: binaryUnsatisfy,
    choose: binaryChoose, mark: scaleMark, known: scaleKnown, recalculate: scaleRecalculate,
    execute: scaleExecute, attach: scaleAttach, detach: scaleDetach, isInput: false};
function unary(methods, out, strength) {
    return add({methods, strength, out, satisfied: false});
}
function equal(a, b) {
    return add({methods: equals, strength: 0, a, b, direction: 0});
}
function scaled(a, scale, offset, b) {
    return add({methods: scales, strength: 0, a, b, direction: 0, scale, offset});
}
// The planner.
let marks = 0;
function nextMark() { marks = marks + 1; return marks; }
function add(c) {
    c.methods.attach(c);
    solve(c);
    return c;
}
function solve(c) {
    const mark = nextMark();
    let overridden = c;
    while (overridden !== null) { overridden = satisfy(overridden, mark); }
}
function satisfy(c, mark) {
    const methods = c.methods;
    methods.choose(c, mark);
    if (!methods.satisfied(c)) {
        if (c.strength === 0) { throw new Error("a required constraint cannot be satisfied"); }
        return null;
    }
    methods.mark(c, mark);
    const out = methods.output(c);
    const overridden = out.determined;
    if (overridden !== null) { overridden.methods.unsatisfy(overridden); }
    out.determined = c;
    if (!propagate(c, mark)) { throw new Error("a cycle"); }
    out.mark = mark;
    return overridden;
}
function consumers(v, list) {
    const all = v.constraints;
    for (let i = 0; i < all.length; i++) {
        const c = all[i];
        if (c !== v.determined && c.methods.satisfied(c)) { list.push(c); }
    }
}
function propagate(c, mark) {
    const todo = [c];
    while (todo.length > 0) {
        const next = todo.pop();
        const out = next.methods.output(next);
        if (out.mark === mark) {
            remove(c);
            return false;
        }
        next.methods.recalculate(next);
        consumers(out, todo);
    }
    return true;
}
function remove(c) {
    const out = c.methods.output(c);
    c.methods.unsatisfy(c);
    c.methods.detach(c);
    out.determined = null;
    out.strength = 6;
    out.stay = true;
    const open = [];
    const todo = [out];
    while (todo.length > 0) {
        const v = todo.pop();
        for (let i = 0; i < v.constraints.length; i++) {
            const next = v.constraints[i];
            if (!next.methods.satisfied(next)) {
                open.push(next);
            } else if (next !== v.determined) {
                next.methods.recalculate(next);
                todo.push(next.methods.output(next));
            }
        }
    }
    for (let strength = 0; strength < 7; strength++) {
        for (let i = 0; i < open.length; i++) {
            if (open[i].strength === strength) { solve(open[i]); }
        }
    }
}
function plan(c) {
    const made = [];
    const mark = nextMark();
    const todo = [c];
    while (todo.length > 0) {
        const next = todo.pop();
        const out = next.methods.output(next);
        if (out.mark !== mark && next.methods.known(next, mark)) {
            made.push(next);
            out.mark = mark;
            consumers(out, todo);
        }
    }
    return made;
}
function execute(steps) {
    for (let i = 0; i < steps.length; i++) {
        const c = steps[i];
        c.methods.execute(c);
    }
}
function change(v, value) {
    const edit = unary(edits, v, 2);
    const steps = plan(edit);
    for (let i = 0; i < 10; i++) {
        v.value = value;
        execute(steps);
    }
    remove(edit);
}
function expect(value, expected) {
    if (value !== expected) { throw new Error("wrong value " + String(value)); }
    return value;
}
// A value goes through a chain of equal variables.
function chain(n) {
    const first = variable(0);
    let last = first;
    for (let i = 0; i < n; i++) {
        const next = variable(0);
        equal(last, next);
        last = next;
    }
    unary(stays, last, 3);
    const edit = unary(edits, first, 2);
    const steps = plan(edit);
    for (let i = 0; i < 100; i++) {
        first.value = i;
        execute(steps);
        expect(last.value, i);
    }
    return last.value;
}
// Points are projected, forward and backward, while the projection changes.
function projection(n) {
    const scale = variable(10);
    const offset = variable(1000);
    let source = null;
    let target = null;
    const targets = [];
    for (let i = 0; i < n; i++) {
        source = variable(i);
        target = variable(i);
        targets.push(target);
        unary(stays, source, 4);
        scaled(source, scale, offset, target);
    }
    change(source, 17);
    expect(target.value, 1170);
    change(target, 1050);
    expect(source.value, 5);
    change(scale, 5);
    for (let i = 0; i < n - 1; i++) { expect(targets[i].value, i * 5 + 1000); }
    change(offset, 2000);
    let sum = 0;
    for (let i = 0; i < n - 1; i++) { sum = sum + expect(targets[i].value, i * 5 + 2000); }
    return sum;
}
function benchmark() {
    marks = 0;
    return chain(100) + projection(100) + marks;
}
for (let round = 0; round < rounds; round++) {
    if (benchmark() !== 222667) { throw new Error("the plans are others"); }
}
console.log(benchmark());
