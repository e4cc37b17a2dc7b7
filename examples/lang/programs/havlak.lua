-- Havlak: finds the loops of a flow graph, and how they nest (Paul Havlak, Nesting of reducible and
-- irreducible loops). The results are the numbers of loops and of blocks.
local rounds = 180
local grow, structure
-- A dictionary whose keys have a field `hash`, and are equal if they are the same object.
local function filled(length, value)
    local list = {}
    for i = 0, length - 1 do list[#list + 1] = value end
    return list
end
local function dictionary() return {buckets = filled(16, false), capacity = 16, size = 0} end
local function find(map, key)
    local entry = map.buckets[key.hash % map.capacity + 1]
    while entry and entry.key ~= key do entry = entry.next end
    return entry
end
local function put(map, key, value)
    local entry = find(map, key)
    if entry then
        entry.value = value
        return
    end
    local bucket = key.hash % map.capacity
    map.buckets[bucket + 1] = {key = key, value = value, next = map.buckets[bucket + 1]}
    map.size = map.size + 1
    if map.size > map.capacity then grow(map) end
end
function grow(map)
    local old = map.buckets
    local length = map.capacity
    map.capacity = length * 2
    map.buckets = filled(map.capacity, false)
    for i = 0, length - 1 do
        local entry = old[i + 1]
        while entry do
            local next = entry.next
            local bucket = entry.key.hash % map.capacity
            entry.next = map.buckets[bucket + 1]
            map.buckets[bucket + 1] = entry
            entry = next
        end
    end
end
-- A set is a list without duplicates.
local function has(set, item)
    for i = 0, #set - 1 do if set[i + 1] == item then return true end end
    return false
end
local function add(set, item)
    if not has(set, item) then set[#set + 1] = item end
end
-- The graph.
local function block(graph, name)
    if name == #graph then graph[#graph + 1] = {hash = name, from = {}, to = {}} end
    return graph[name + 1]
end
local function connect(graph, from, to)
    local source = block(graph, from)
    local target = block(graph, to)
    source.to[#source.to + 1] = target
    target.from[#target.from + 1] = source
end
local function diamond(graph, start)
    connect(graph, start, start + 1)
    connect(graph, start, start + 2)
    connect(graph, start + 1, start + 3)
    connect(graph, start + 2, start + 3)
    return start + 3
end
local function straight(graph, start, length)
    for i = 0, length - 1 do connect(graph, start + i, start + i + 1) end
    return start + length
end
local function baseLoop(graph, from)
    local header = straight(graph, from, 1)
    local first = diamond(graph, header)
    local inner = straight(graph, first, 1)
    local second = diamond(graph, inner)
    local footer = straight(graph, second, 1)
    connect(graph, second, inner)
    connect(graph, first, header)
    connect(graph, footer, from)
    return straight(graph, footer, 1)
end
local function simpleGraph()
    local graph = {}
    block(graph, 0)
    baseLoop(graph, 0)
    connect(graph, 0, 2)
    return graph
end
local function largeGraph(graph)
    local n = 2
    for i = 0, 9 do
        block(graph, n + 1)
        connect(graph, 2, n + 1)
        n = n + 1
        for j = 0, 9 do
            local top = n
            n = straight(graph, n, 1)
            for k = 0, 4 do n = baseLoop(graph, n) end
            local bottom = straight(graph, n, 1)
            connect(graph, n, top)
            n = bottom
        end
        connect(graph, n, 1)
    end
end
-- The loops.
local function loop(structure, header, isReducible)
    local made = {header = header, blocks = {}, children = {}, parent = nil,
        isReducible = isReducible, number = #structure, nesting = 0, depth = 0}
    if header ~= nil then add(made.blocks, header) end
    structure[#structure + 1] = made
    return made
end
function structure()
    local loops = {}
    loop(loops, nil, true)
    return loops
end
local function setParent(loop, parent)
    loop.parent = parent
    add(parent.children, loop)
end
local function nest(loop, depth)
    loop.depth = depth
    for i = 0, #loop.children - 1 do
        local child = loop.children[i + 1]
        nest(child, depth + 1)
        if child.nesting >= loop.nesting then loop.nesting = child.nesting + 1 end
    end
end
local function nestAll(loops)
    for i = 1, #loops - 1 do
        if loops[i + 1].parent == nil then setParent(loops[i + 1], loops[1]) end
    end
    nest(loops[1], 0)
end
-- A node of sets that are joined (union and find).
local function node(block, number)
    local made = {parent = nil, block = block, number = number, loop = nil}
    made.parent = made
    return made
end
local function root(node)
    local passed = {}
    while node ~= node.parent do
        if node.parent ~= node.parent.parent then passed[#passed + 1] = node end
        node = node.parent
    end
    for i = 0, #passed - 1 do passed[i + 1].parent = node end
    return node
end
-- The search. A block that the walk has not visited has the number -1.
local function walk(search, block, number)
    search.nodes[number + 1] = node(block, number)
    put(search.numbers, block, number)
    local last = number
    for i = 0, #block.to - 1 do
        local target = block.to[i + 1]
        if find(search.numbers, target).value == -1 then last = walk(search, target, last + 1) end
    end
    search.last[number + 1] = last
    return last
end
local function isAncestor(search, w, v) return w <= v and v <= search.last[w + 1] end
local function identifyEdges(search, w)
    local from = search.nodes[w + 1].block.from
    for i = 0, #from - 1 do
        local v = find(search.numbers, from[i + 1]).value
        if v ~= -1 then
            if isAncestor(search, w, v) then
                search.back[w + 1][#search.back[w + 1] + 1] = v
            else
                add(search.other[w + 1], v)
            end
        end
    end
end
local function searching(graph)
    local size = #graph
    local search = {numbers = dictionary(), nodes = filled(size, false), last = filled(size, 0),
        kinds = filled(size, "no header"), headers = filled(size, 0), back = {}, other = {}}
    for i = 0, size - 1 do
        put(search.numbers, graph[i + 1], -1)
        search.back[#search.back + 1] = {}
        search.other[#search.other + 1] = {}
    end
    walk(search, graph[1], 0)
    for w = 0, size - 1 do if search.nodes[w + 1] then identifyEdges(search, w) end end
    return search
end
local function heads(search, w, pool)
    local back = search.back[w + 1]
    for i = 0, #back - 1 do
        if back[i + 1] ~= w then
            pool[#pool + 1] = root(search.nodes[back[i + 1] + 1])
        else
            search.kinds[w + 1] = "self"
        end
    end
end
local function body(search, w, pool, todo, x)
    local other = search.other[x.number + 1]
    for i = 0, #other - 1 do
        local y = root(search.nodes[other[i + 1] + 1])
        if not isAncestor(search, w, y.number) then
            search.kinds[w + 1] = "irreducible"
            add(search.other[w + 1], y.number)
        elseif y.number ~= w and not has(pool, y) then
            todo[#todo + 1] = y
            pool[#pool + 1] = y
        end
    end
end
local function setLoop(search, w, pool, loop)
    search.nodes[w + 1].loop = loop
    for i = 0, #pool - 1 do
        local member = pool[i + 1]
        search.headers[member.number + 1] = w
        member.parent = search.nodes[w + 1]
        if member.loop ~= nil then
            setParent(member.loop, loop)
        else
            add(loop.blocks, member.block)
        end
    end
end
local function findLoops(graph, loops)
    local search = searching(graph)
    for i = 0, #graph - 1 do
        local w = #graph - 1 - i
        if search.nodes[w + 1] then
            local pool = {}
            heads(search, w, pool)
            local todo = {}
            for k = 0, #pool - 1 do todo[#todo + 1] = pool[k + 1] end
            if #pool > 0 then search.kinds[w + 1] = "reducible" end
            local done = 0
            while done < #todo do
                body(search, w, pool, todo, todo[done + 1])
                done = done + 1
            end
            if #pool > 0 or search.kinds[w + 1] == "self" then
                local isReducible = search.kinds[w + 1] ~= "irreducible"
                setLoop(search, w, pool, loop(loops, search.nodes[w + 1].block, isReducible))
            end
        end
    end
end
local graph = simpleGraph()
local loops = structure()
findLoops(graph, loops)
largeGraph(graph)
findLoops(graph, loops)
nestAll(loops)
for round = 0, rounds - 1 do
    local again = structure()
    findLoops(graph, again)
    nestAll(again)
    if #again ~= 1602 then error("the number of loops is another", 0) end
end
print(#loops)
print(#graph)
