-- Richards: the scheduler of an operating system (Martin Richards), with records and closures.
-- The result joins the numbers of packets queued and of tasks held.
local rounds = 700
local floor = math.floor
-- LuaJIT has a function, and Lua 5.4 an operator.
local bxor = bit and bit.bxor or load("return function(a, b) return a ~ b end")()
local device
local function packet(link, ident, kind)
    return {link = link, ident = ident, kind = kind, datum = 0, data = {0, 0, 0, 0}}
end
local function append(packet, queue)
    packet.link = nil
    if queue == nil then return packet end
    local last = queue
    while last.link ~= nil do last = last.link end
    last.link = packet
    return queue
end
local tasks = {nil, nil, nil, nil, nil, nil}
local list = nil
local current = nil
local currentId = 0
local queued = 0
local held = 0
-- A task runs with (task, packet). `waiting` is: is it waiting for a packet, `pending`: has it one.
local function task(ident, priority, queue, pending, waiting, run, data)
    local made = {link = list, ident = ident, priority = priority, queue = queue,
        pending = pending, waiting = waiting, holding = false, run = run, data = data}
    list = made
    tasks[ident + 1] = made
    return made
end
local function hold()
    held = held + 1
    current.holding = true
    return current.link
end
local function release(ident)
    local t = tasks[ident + 1]
    t.holding = false
    if t.priority > current.priority then return t end
    return current
end
local function wait()
    current.waiting = true
    return current
end
local function send(packet)
    local t = tasks[packet.ident + 1]
    queued = queued + 1
    packet.link = nil
    packet.ident = currentId
    if t.queue == nil then
        t.queue = packet
        t.pending = true
        if t.priority > current.priority then return t end
    else
        append(packet, t.queue)
    end
    return current
end
local function idle(data, packet)
    data.count = data.count - 1
    if data.count == 0 then return hold() end
    if data.control % 2 == 0 then
        data.control = floor(data.control / 2)
        return release(4)
    end
    data.control = bxor(floor(data.control / 2), 53256)
    return release(5)
end
local function work(data, packet)
    if packet == nil then return wait() end
    if data.handler == 2 then data.handler = 3 else data.handler = 2 end
    packet.ident = data.handler
    packet.datum = 0
    for i = 0, 3 do
        data.letter = data.letter + 1
        if data.letter > 26 then data.letter = 1 end
        packet.data[i + 1] = 64 + data.letter
    end
    return send(packet)
end
local function handle(data, packet)
    if packet ~= nil then
        if packet.kind == 1 then
            data.works = append(packet, data.works)
        else
            data.devices = append(packet, data.devices)
        end
    end
    local job = data.works
    if job ~= nil then
        local count = job.datum
        if count >= 4 then
            data.works = job.link
            return send(job)
        end
        local device = data.devices
        if device ~= nil then
            data.devices = device.link
            device.datum = job.data[count + 1]
            job.datum = count + 1
            return send(device)
        end
    end
    return wait()
end
function device(data, packet)
    if packet == nil then
        if data.packet == nil then return wait() end
        local done = data.packet
        data.packet = nil
        return send(done)
    end
    data.packet = packet
    return hold()
end
local function schedule()
    current = list
    while current ~= nil do
        if current.holding or current.waiting and not current.pending then
            current = current.link
        else
            currentId = current.ident
            local packet = nil
            if current.pending and current.waiting then
                packet = current.queue
                current.queue = packet.link
                current.waiting = false
                current.pending = current.queue ~= nil
            end
            local run = current.run
            current = run(current.data, packet)
        end
    end
end
local function richards()
    list = nil
    queued = 0
    held = 0
    task(0, 0, nil, false, false, idle, {control = 1, count = 10000})
    local queue = packet(nil, 0, 1)
    queue = packet(queue, 0, 1)
    task(1, 1000, queue, true, true, work, {handler = 2, letter = 0})
    queue = packet(nil, 4, 0)
    queue = packet(queue, 4, 0)
    queue = packet(queue, 4, 0)
    task(2, 2000, queue, true, true, handle, {works = nil, devices = nil})
    queue = packet(nil, 5, 0)
    queue = packet(queue, 5, 0)
    queue = packet(queue, 5, 0)
    task(3, 3000, queue, true, true, handle, {works = nil, devices = nil})
    task(4, 4000, nil, false, true, device, {packet = nil, x = 0})
    task(5, 5000, nil, false, true, device, {packet = nil, x = 0})
    schedule()
    return queued * 100000 + held
end
for round = 0, rounds - 1 do
    if richards() ~= 2324609297 then error("the tasks ran in another order", 0) end
end
print(richards())
