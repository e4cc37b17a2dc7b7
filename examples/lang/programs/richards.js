// Richards: the scheduler of an operating system (Martin Richards), with records and closures.
// The result joins the numbers of packets queued and of tasks held.
"use strict";
const rounds = 700;
function packet(link, ident, kind) {
    return {link, ident, kind, datum: 0, data: [0, 0, 0, 0]};
}
function append(packet, queue) {
    packet.link = null;
    if (queue === null) { return packet; }
    let last = queue;
    while (last.link !== null) { last = last.link; }
    last.link = packet;
    return queue;
}
const tasks = [null, null, null, null, null, null];
let list = null;
let current = null;
let currentId = 0;
let queued = 0;
let held = 0;
// A task runs with (task, packet). `waiting` is: is it waiting for a packet, `pending`: has it one.
function task(ident, priority, queue, pending, waiting, run, data) {
    const made = {link: list, ident, priority, queue, pending, waiting, holding: false, run, data};
    list = made;
    tasks[ident] = made;
    return made;
}
function hold() {
    held = held + 1;
    current.holding = true;
    return current.link;
}
function release(ident) {
    const t = tasks[ident];
    t.holding = false;
    if (t.priority > current.priority) { return t; }
    return current;
}
function wait() {
    current.waiting = true;
    return current;
}
function send(packet) {
    const t = tasks[packet.ident];
    queued = queued + 1;
    packet.link = null;
    packet.ident = currentId;
    if (t.queue === null) {
        t.queue = packet;
        t.pending = true;
        if (t.priority > current.priority) { return t; }
    } else {
        append(packet, t.queue);
    }
    return current;
}
function idle(data, packet) {
    data.count = data.count - 1;
    if (data.count === 0) { return hold(); }
    if (data.control % 2 === 0) {
        data.control = Math.floor(data.control / 2);
        return release(4);
    }
    data.control = Math.floor(data.control / 2) ^ 53256;
    return release(5);
}
function work(data, packet) {
    if (packet === null) { return wait(); }
    if (data.handler === 2) {
        data.handler = 3;
    } else {
        data.handler = 2;
    }
    packet.ident = data.handler;
    packet.datum = 0;
    for (let i = 0; i < 4; i++) {
        data.letter = data.letter + 1;
        if (data.letter > 26) { data.letter = 1; }
        packet.data[i] = 64 + data.letter;
    }
    return send(packet);
}
function handle(data, packet) {
    if (packet !== null) {
        if (packet.kind === 1) {
            data.works = append(packet, data.works);
        } else {
            data.devices = append(packet, data.devices);
        }
    }
    const job = data.works;
    if (job !== null) {
        const count = job.datum;
        if (count >= 4) {
            data.works = job.link;
            return send(job);
        }
        const device = data.devices;
        if (device !== null) {
            data.devices = device.link;
            device.datum = job.data[count];
            job.datum = count + 1;
            return send(device);
        }
    }
    return wait();
}
function device(data, packet) {
    if (packet === null) {
        if (data.packet === null) { return wait(); }
        const done = data.packet;
        data.packet = null;
        return send(done);
    }
    data.packet = packet;
    return hold();
}
function schedule() {
    current = list;
    while (current !== null) {
        if (current.holding || current.waiting && !current.pending) {
            current = current.link;
        } else {
            currentId = current.ident;
            let packet = null;
            if (current.pending && current.waiting) {
                packet = current.queue;
                current.queue = packet.link;
                current.waiting = false;
                current.pending = current.queue !== null;
            }
            const run = current.run;
            current = run(current.data, packet);
        }
    }
}
function richards() {
    list = null;
    queued = 0;
    held = 0;
    task(0, 0, null, false, false, idle, {control: 1, count: 10000});
    let queue = packet(null, 0, 1);
    queue = packet(queue, 0, 1);
    task(1, 1000, queue, true, true, work, {handler: 2, letter: 0});
    queue = packet(null, 4, 0);
    queue = packet(queue, 4, 0);
    queue = packet(queue, 4, 0);
    task(2, 2000, queue, true, true, handle, {works: null, devices: null});
    queue = packet(null, 5, 0);
    queue = packet(queue, 5, 0);
    queue = packet(queue, 5, 0);
    task(3, 3000, queue, true, true, handle, {works: null, devices: null});
    task(4, 4000, null, false, true, device, {packet: null, x: 0});
    task(5, 5000, null, false, true, device, {packet: null, x: 0});
    schedule();
    return queued * 100000 + held;
}
for (let round = 0; round < rounds; round++) {
    if (richards() !== 2324609297) { throw new Error("the tasks ran in another order"); }
}
console.log(richards());
