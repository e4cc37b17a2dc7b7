-- CD: detects collisions of planes in flight. The result is the number of collisions in 200 frames.
local rounds = 8
local floor = math.floor
local sqrt = math.sqrt
local balance, rotateLeft, rotateRight, moved, isInside, motions
-- Trees that are balanced by red and black nodes.
local function tree(compare) return {root = nil, compare = compare} end
local function put(tree, key, value)
    local compare = tree.compare
    local parent = nil
    local at = tree.root
    local order = 0
    while at ~= nil do
        parent = at
        order = compare(key, at.key)
        if order == 0 then
            local old = at.value
            at.value = value
            return old
        end
        if order < 0 then at = at.left else at = at.right end
    end
    local made = {key = key, value = value, left = nil, right = nil, parent = parent, isRed = true}
    if parent == nil then
        tree.root = made
    elseif order < 0 then
        parent.left = made
    else
        parent.right = made
    end
    balance(tree, made)
    return nil
end
function balance(tree, made)
    local x = made
    while x ~= tree.root and x.parent.isRed do
        local isLeft = x.parent == x.parent.parent.left
        local uncle = x.parent.parent.left
        if isLeft then uncle = x.parent.parent.right end
        if uncle ~= nil and uncle.isRed then
            x.parent.isRed = false
            uncle.isRed = false
            x = x.parent.parent
            x.isRed = true
        else
            if isLeft and x == x.parent.right then
                x = x.parent
                rotateLeft(tree, x)
            elseif not isLeft and x == x.parent.left then
                x = x.parent
                rotateRight(tree, x)
            end
            x.parent.isRed = false
            x.parent.parent.isRed = true
            if isLeft then
                rotateRight(tree, x.parent.parent)
            else
                rotateLeft(tree, x.parent.parent)
            end
        end
    end
    tree.root.isRed = false
end
local function replace(tree, x, y)
    y.parent = x.parent
    if x.parent == nil then
        tree.root = y
    elseif x == x.parent.left then
        x.parent.left = y
    else
        x.parent.right = y
    end
    x.parent = y
end
function rotateLeft(tree, x)
    local y = x.right
    x.right = y.left
    if y.left ~= nil then y.left.parent = x end
    replace(tree, x, y)
    y.left = x
end
function rotateRight(tree, x)
    local y = x.left
    x.left = y.right
    if y.right ~= nil then y.right.parent = x end
    replace(tree, x, y)
    y.right = x
end
local function get(tree, key)
    local compare = tree.compare
    local at = tree.root
    while at ~= nil do
        local order = compare(key, at.key)
        if order == 0 then return at.value end
        if order < 0 then at = at.left else at = at.right end
    end
    return nil
end
-- Calls a function with each node, in order.
local function each(tree, action)
    local at = tree.root
    while at ~= nil and at.left ~= nil do at = at.left end
    while at ~= nil do
        action(at)
        if at.right ~= nil then
            at = at.right
            while at.left ~= nil do at = at.left end
        else
            local child = at
            at = at.parent
            while at ~= nil and child == at.right do
                child = at
                at = at.parent
            end
        end
    end
end
-- Vectors.
local function compareNumbers(a, b)
    if a < b then return -1 end
    if a > b then return 1 end
    return 0
end
local function point(x, y) return {x = x, y = y} end
local function comparePoints(a, b)
    local order = compareNumbers(a.x, b.x)
    if order ~= 0 then return order end
    return compareNumbers(a.y, b.y)
end
local function vector(x, y, z) return {x = x, y = y, z = z} end
local function plus(a, b) return vector(a.x + b.x, a.y + b.y, a.z + b.z) end
local function minus(a, b) return vector(a.x - b.x, a.y - b.y, a.z - b.z) end
local function times(a, n) return vector(a.x * n, a.y * n, a.z * n) end
local function dot(a, b) return a.x * b.x + a.y * b.y + a.z * b.z end
-- The sine by its series.
local function sine(angle)
    local x = angle - floor(angle / 6.283185307179586) * 6.283185307179586
    local term = x
    local sum = x
    for i = 1, 19 do
        term = -term * x * x / (2 * i * (2 * i + 1))
        sum = sum + term
    end
    return sum
end
local function frame(planes, time)
    local list = {}
    local cosine = sine(time + 1.5707963267948966)
    for i = 0, planes - 1 do
        local place = sine(time) * 2 + (i - 1) * 3
        if i % 2 == 0 then place = cosine * 2 + i * 3 end
        list[#list + 1] = {sign = {number = i}, position = vector(time, place, 10.0)}
    end
    return list
end
-- A motion of a plane from one frame to the next.
local function compareSigns(a, b) return compareNumbers(a.number, b.number) end
local function crossing(a, b)
    local from = minus(a.from, b.from)
    local speed = minus(minus(a.to, a.from), minus(b.to, b.from))
    local square = dot(speed, speed)
    if square == 0 then
        if dot(from, from) <= 1 then return times(plus(a.from, b.from), 0.5) end
        return
    end
    local linear = 2 * dot(from, speed)
    local constant = dot(from, from) - 1
    local discriminant = linear * linear - 4 * square * constant
    if discriminant < 0 then return end
    local first = (-linear - sqrt(discriminant)) / (2 * square)
    local last = (-linear + sqrt(discriminant)) / (2 * square)
    if first > 1 or last < 0 then return end
    local at = first
    if first < 0 then at = 0 end
    local place = times(plus(moved(a, at), moved(b, at)), 0.5)
    if isInside(place.x, 1000) and isInside(place.y, 1000) and isInside(place.z, 10) then
        return place
    end
    return nil
end
function moved(motion, time)
    return plus(motion.from, times(minus(motion.to, motion.from), time))
end
function isInside(n, most) return n >= 0 and n <= most end
-- Space has columns, two units wide. A map leads from a column to the motions that touch it.
local function corner(n) return floor(n / 2) * 2 end
local function touches(low, high)
    return low <= 1 and 1 <= high or low <= 0 and 0 <= high or 0 <= low and high <= 1
end
local function isNear(at, from) return at <= from + 0.5 and from - 0.5 <= at + 2 end
local function isIn(column, motion)
    if not isInside(column.x, 1000) or not isInside(column.y, 1000) then return false end
    local x = motion.from.x
    local dx = motion.to.x - x
    local y = motion.from.y
    local dy = motion.to.y - y
    local lowX = (column.x - 0.5 - x) / dx
    local highX = (column.x + 2.5 - x) / dx
    if dx < 0 then
        local swapped = lowX
        lowX = highX
        highX = swapped
    end
    local lowY = (column.y - 0.5 - y) / dy
    local highY = (column.y + 2.5 - y) / dy
    if dy < 0 then
        local swapped = lowY
        lowY = highY
        highY = swapped
    end
    if not (dx == 0 and isNear(column.x, x) or touches(lowX, highX)) then return false end
    if not (dy == 0 and isNear(column.y, y) or touches(lowY, highY)) then return false end
    return dx == 0 or dy == 0 or lowY <= highX and highX <= highY or lowY <= lowX
        and lowX <= highY or lowX <= lowY and highY <= highX
end
local function draw(columns, seen, column, motion)
    if not isIn(column, motion) or put(seen, column, true) then return end
    local motions = get(columns, column)
    if motions == nil then
        motions = {}
        put(columns, column, motions)
    end
    motions[#motions + 1] = motion
    for i = 0, 2 do
        for j = 0, 2 do
            if i ~= 1 or j ~= 1 then
                draw(columns, seen, point(column.x + i * 2 - 2, column.y + j * 2 - 2), motion)
            end
        end
    end
end
local function crowded(motions)
    local columns = tree(comparePoints)
    for i = 0, #motions - 1 do
        local from = motions[i + 1].from
        draw(columns, tree(comparePoints), point(corner(from.x), corner(from.y)), motions[i + 1])
    end
    local lists = {}
    each(columns, function (node) if #node.value > 1 then lists[#lists + 1] = node.value end end)
    return lists
end
-- The detector has the last position of each plane.
function motions(detector, frame)
    local list = {}
    local seen = tree(compareSigns)
    for i = 0, #frame - 1 do
        local plane = frame[i + 1]
        local old = put(detector.positions, plane.sign, plane.position)
        if old == nil then old = plane.position end
        put(seen, plane.sign, true)
        list[#list + 1] = {sign = plane.sign, from = old, to = plane.position}
    end
    local kept = tree(compareSigns)
    local gone = 0
    each(detector.positions, function (node)
        if get(seen, node.key) then put(kept, node.key, node.value) else gone = gone + 1 end
    end)
    if gone > 0 then detector.positions = kept end
    return list
end
local function collisions(detector, frame)
    local found = {}
    local lists = crowded(motions(detector, frame))
    for k = 0, #lists - 1 do
        local list = lists[k + 1]
        for i = 0, #list - 1 do
            for j = i + 1, #list - 1 do
                local place = crossing(list[i + 1], list[j + 1])
                if place ~= nil then
                    found[#found + 1] = {first = list[i + 1].sign, second = list[j + 1].sign,
                        place = place}
                end
            end
        end
    end
    return found
end
local function benchmark(planes)
    local detector = {positions = tree(compareSigns)}
    local found = 0
    for i = 0, 199 do found = found + #collisions(detector, frame(planes, i / 10)) end
    return found
end
for round = 0, rounds - 1 do
    if benchmark(100) ~= 4305 then error("the number of collisions is another", 0) end
end
print(benchmark(10))
