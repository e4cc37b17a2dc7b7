-- DeltaBlue: an incremental solver of constraints between variables (Freeman-Benson and Maloney).
-- A constraint has a table of methods, as an object of a class would.
local rounds = 1600
local floor = math.floor
local equalExecute, scaleExecute, add, solve, satisfy, propagate, remove
-- Strengths: 0 is required, 6 the weakest.
local function variable(value)
    return {value = value, constraints = {}, determined = nil, mark = 0, strength = 6, stay = true}
end
local function without(list, item)
    local kept = {}
    for i = 0, #list - 1 do if list[i + 1] ~= item then kept[#kept + 1] = list[i + 1] end end
    return kept
end
-- Constraints on one variable.
local function unaryOutput(c) return c.out end
local function unarySatisfied(c) return c.satisfied end
local function unaryUnsatisfy(c) c.satisfied = false end
local function unaryChoose(c, mark)
    c.satisfied = c.out.mark ~= mark and c.strength < c.out.strength
end
local function unaryMark(c, mark) end
local function unaryKnown(c, mark) return true end
local function unaryRecalculate(c)
    c.out.strength = c.strength
    c.out.stay = not c.methods.isInput
end
local function unaryExecute(c) end
local function unaryAttach(c) c.out.constraints[#c.out.constraints + 1] = c end
local function unaryDetach(c) c.out.constraints = without(c.out.constraints, c) end
local function unaryMethods(isInput)
    return {output = unaryOutput, satisfied = unarySatisfied, unsatisfy = unaryUnsatisfy,
        choose = unaryChoose, mark = unaryMark, known = unaryKnown, recalculate = unaryRecalculate,
        execute = unaryExecute, attach = unaryAttach, detach = unaryDetach, isInput = isInput}
end
-- Constraints between two variables. The direction is 1 to `b`, -1 to `a`, 0 if not satisfied.
local function binaryInput(c) if c.direction == 1 then return c.a end return c.b end
local function binaryOutput(c) if c.direction == 1 then return c.b end return c.a end
local function binarySatisfied(c) return c.direction ~= 0 end
local function binaryUnsatisfy(c) c.direction = 0 end
local function binaryChoose(c, mark)
    local direction = 0
    local a = c.a
    local b = c.b
    if a.mark == mark then
        if b.mark ~= mark and c.strength < b.strength then direction = 1 end
    elseif b.mark == mark then
        if c.strength < a.strength then direction = -1 end
    elseif a.strength > b.strength then
        if c.strength < a.strength then direction = -1 end
    elseif c.strength < b.strength then
        direction = 1
    end
    c.direction = direction
end
local function isKnown(v, mark) return v.mark == mark or v.stay or v.determined == nil end
local function equalMark(c, mark) binaryInput(c).mark = mark end
local function equalKnown(c, mark) return isKnown(binaryInput(c), mark) end
local function equalRecalculate(c)
    local from = binaryInput(c)
    local to = binaryOutput(c)
    to.strength = from.strength
    if c.strength > from.strength then to.strength = c.strength end
    to.stay = from.stay
    if to.stay then equalExecute(c) end
end
function equalExecute(c) binaryOutput(c).value = binaryInput(c).value end
local function equalAttach(c)
    c.a.constraints[#c.a.constraints + 1] = c
    c.b.constraints[#c.b.constraints + 1] = c
end
local function equalDetach(c)
    c.a.constraints = without(c.a.constraints, c)
    c.b.constraints = without(c.b.constraints, c)
end
-- b = a * scale + offset
local function scaleMark(c, mark)
    binaryInput(c).mark = mark
    c.scale.mark = mark
    c.offset.mark = mark
end
local function scaleKnown(c, mark)
    return isKnown(binaryInput(c), mark) and isKnown(c.scale, mark) and isKnown(c.offset, mark)
end
local function scaleRecalculate(c)
    local from = binaryInput(c)
    local to = binaryOutput(c)
    to.strength = from.strength
    if c.strength > from.strength then to.strength = c.strength end
    to.stay = from.stay and c.scale.stay and c.offset.stay
    if to.stay then scaleExecute(c) end
end
function scaleExecute(c)
    if c.direction == 1 then
        c.b.value = c.a.value * c.scale.value + c.offset.value
    else
        c.a.value = floor((c.b.value - c.offset.value) / c.scale.value)
    end
end
local function scaleAttach(c)
    equalAttach(c)
    c.scale.constraints[#c.scale.constraints + 1] = c
    c.offset.constraints[#c.offset.constraints + 1] = c
end
local function scaleDetach(c)
    equalDetach(c)
    c.scale.constraints = without(c.scale.constraints, c)
    c.offset.constraints = without(c.offset.constraints, c)
end
local stays = unaryMethods(false)
local edits = unaryMethods(true)
local equals = {output = binaryOutput, satisfied = binarySatisfied, unsatisfy = binaryUnsatisfy,
    choose = binaryChoose, mark = equalMark, known = equalKnown, recalculate = equalRecalculate,
    execute = equalExecute, attach = equalAttach, detach = equalDetach, isInput = false}
local scales = {output = binaryOutput, satisfied = binarySatisfied, unsatisfy = binaryUnsatisfy,
    choose = binaryChoose, mark = scaleMark, known = scaleKnown, recalculate = scaleRecalculate,
    execute = scaleExecute, attach = scaleAttach, detach = scaleDetach, isInput = false}
local function unary(methods, out, strength)
    return add({methods = methods, strength = strength, out = out, satisfied = false})
end
local function equal(a, b)
    return add({methods = equals, strength = 0, a = a, b = b, direction = 0})
end
local function scaled(a, scale, offset, b)
    return add({methods = scales, strength = 0, a = a, b = b, direction = 0, scale = scale,
        offset = offset})
end
-- The planner.
local marks = 0
local function nextMark() marks = marks + 1 return marks end
function add(c)
    c.methods.attach(c)
    solve(c)
    return c
end
function solve(c)
    local mark = nextMark()
    local overridden = c
    while overridden ~= nil do overridden = satisfy(overridden, mark) end
end
function satisfy(c, mark)
    local methods = c.methods
    methods.choose(c, mark)
    if not methods.satisfied(c) then
        if c.strength == 0 then error("a required constraint cannot be satisfied", 0) end
        return
    end
    methods.mark(c, mark)
    local out = methods.output(c)
    local overridden = out.determined
    if overridden ~= nil then overridden.methods.unsatisfy(overridden) end
    out.determined = c
    if not propagate(c, mark) then error("a cycle", 0) end
    out.mark = mark
    return overridden
end
local function consumers(v, list)
    local all = v.constraints
    for i = 0, #all - 1 do
        local c = all[i + 1]
        if c ~= v.determined and c.methods.satisfied(c) then list[#list + 1] = c end
    end
end
function propagate(c, mark)
    local todo = {c}
    while #todo > 0 do
        local next = todo[#todo]
        todo[#todo] = nil
        local out = next.methods.output(next)
        if out.mark == mark then
            remove(c)
            return false
        end
        next.methods.recalculate(next)
        consumers(out, todo)
    end
    return true
end
function remove(c)
    local out = c.methods.output(c)
    c.methods.unsatisfy(c)
    c.methods.detach(c)
    out.determined = nil
    out.strength = 6
    out.stay = true
    local open = {}
    local todo = {out}
    while #todo > 0 do
        local v = todo[#todo]
        todo[#todo] = nil
        for i = 0, #v.constraints - 1 do
            local next = v.constraints[i + 1]
            if not next.methods.satisfied(next) then
                open[#open + 1] = next
            elseif next ~= v.determined then
                next.methods.recalculate(next)
                todo[#todo + 1] = next.methods.output(next)
            end
        end
    end
    for strength = 0, 6 do
        for i = 0, #open - 1 do if open[i + 1].strength == strength then solve(open[i + 1]) end end
    end
end
local function plan(c)
    local made = {}
    local mark = nextMark()
    local todo = {c}
    while #todo > 0 do
        local next = todo[#todo]
        todo[#todo] = nil
        local out = next.methods.output(next)
        if out.mark ~= mark and next.methods.known(next, mark) then
            made[#made + 1] = next
            out.mark = mark
            consumers(out, todo)
        end
    end
    return made
end
local function execute(steps)
    for i = 0, #steps - 1 do
        local c = steps[i + 1]
        c.methods.execute(c)
    end
end
local function change(v, value)
    local edit = unary(edits, v, 2)
    local steps = plan(edit)
    for i = 0, 9 do
        v.value = value
        execute(steps)
    end
    remove(edit)
end
local function expect(value, expected)
    if value ~= expected then error("wrong value " .. tostring(value), 0) end
    return value
end
-- A value goes through a chain of equal variables.
local function chain(n)
    local first = variable(0)
    local last = first
    for i = 0, n - 1 do
        local next = variable(0)
        equal(last, next)
        last = next
    end
    unary(stays, last, 3)
    local edit = unary(edits, first, 2)
    local steps = plan(edit)
    for i = 0, 99 do
        first.value = i
        execute(steps)
        expect(last.value, i)
    end
    return last.value
end
-- Points are projected, forward and backward, while the projection changes.
local function projection(n)
    local scale = variable(10)
    local offset = variable(1000)
    local source = nil
    local target = nil
    local targets = {}
    for i = 0, n - 1 do
        source = variable(i)
        target = variable(i)
        targets[#targets + 1] = target
        unary(stays, source, 4)
        scaled(source, scale, offset, target)
    end
    change(source, 17)
    expect(target.value, 1170)
    change(target, 1050)
    expect(source.value, 5)
    change(scale, 5)
    for i = 0, n - 2 do expect(targets[i + 1].value, i * 5 + 1000) end
    change(offset, 2000)
    local sum = 0
    for i = 0, n - 2 do sum = sum + expect(targets[i + 1].value, i * 5 + 2000) end
    return sum
end
local function benchmark()
    marks = 0
    return chain(100) + projection(100) + marks
end
for round = 0, rounds - 1 do
    if benchmark() ~= 222667 then error("the plans are others", 0) end
end
print(benchmark())
