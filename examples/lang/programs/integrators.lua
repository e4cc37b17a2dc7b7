-- Four integrators of a function that they call as a value, and the same loops with the call of one
-- function by its name. `wicker integrators` measures all that is above the last part.
local function decay(t, y) return t - 2 * y end
local function wave(t, y) return y * (1 - y) - 0.25 * t end
local function well(t, y)
    local off = y - 3
    return off * off + t
end

local function euler(f, y, n)
    local h = 1 / n
    local t = 0
    for i = 0, n - 1 do
        y = y + h * f(t, y)
        t = t + h
    end
    return y
end
local function midpoint(f, y, n)
    local h = 1 / n
    local t = 0
    for i = 0, n - 1 do
        y = y + h * f(t + 0.5 * h, y + 0.5 * h * f(t, y))
        t = t + h
    end
    return y
end
local function runge_kutta(f, y, n)
    local h = 1 / n
    local t = 0
    for i = 0, n - 1 do
        local a = f(t, y)
        local b = f(t + 0.5 * h, y + 0.5 * h * a)
        local c = f(t + 0.5 * h, y + 0.5 * h * b)
        local d = f(t + h, y + h * c)
        y = y + h / 6 * (a + 2 * b + 2 * c + d)
        t = t + h
    end
    return y
end
-- Simulated annealing: a worse place is taken with a chance that falls with the temperature. The
-- chance is a rational function in the place of an exponential.
local function anneal(f, y, n)
    local seed = 42
    local heat = 1
    local least = f(0, y)
    for i = 0, n - 1 do
        seed = (seed * 3877 + 29573) % 139968
        local there = y + (seed / 69984 - 1)
        local level = f(0, there)
        seed = (seed * 3877 + 29573) % 139968
        local worse = (level - least) / heat
        if worse <= 0 or seed / 139968 * (1 + worse * (1 + worse)) < 1 then
            y = there
            least = level
        end
        heat = heat * 0.9999 + 0.0001
    end
    return y
end

local function direct_euler(f, y, n)
    local h = 1 / n
    local t = 0
    for i = 0, n - 1 do
        y = y + h * decay(t, y)
        t = t + h
    end
    return y
end
local function direct_midpoint(f, y, n)
    local h = 1 / n
    local t = 0
    for i = 0, n - 1 do
        y = y + h * decay(t + 0.5 * h, y + 0.5 * h * decay(t, y))
        t = t + h
    end
    return y
end
local function direct_runge_kutta(f, y, n)
    local h = 1 / n
    local t = 0
    for i = 0, n - 1 do
        local a = decay(t, y)
        local b = decay(t + 0.5 * h, y + 0.5 * h * a)
        local c = decay(t + 0.5 * h, y + 0.5 * h * b)
        local d = decay(t + h, y + h * c)
        y = y + h / 6 * (a + 2 * b + 2 * c + d)
        t = t + h
    end
    return y
end
local function direct_anneal(f, y, n)
    local seed = 42
    local heat = 1
    local least = decay(0, y)
    for i = 0, n - 1 do
        seed = (seed * 3877 + 29573) % 139968
        local there = y + (seed / 69984 - 1)
        local level = decay(0, there)
        seed = (seed * 3877 + 29573) % 139968
        local worse = (level - least) / heat
        if worse <= 0 or seed / 139968 * (1 + worse * (1 + worse)) < 1 then
            y = there
            least = level
        end
        heat = heat * 0.9999 + 0.0001
    end
    return y
end

-- The last part. The function changes between calls, and in the middle of a loop.
local function switching(f, g, y, n)
    local h = 1 / n
    local t = 0
    for i = 0, n - 1 do
        if i == math.floor(n / 2) then f = g end
        y = y + h * f(t, y)
        t = t + h
    end
    return y
end
local function millionths(x) return math.floor(x * 1000000) end
local functions = {[0] = decay, wave, well, decay}
local integrators = {[0] = euler, midpoint, runge_kutta, anneal}
for i = 0, 3 do
    for f = 0, 3 do
        print(i .. " " .. f .. " " .. millionths(integrators[i](functions[f], 2.5, 20000)))
    end
end
for f = 0, 2 do print(millionths(switching(functions[f], functions[f + 1], 2.5, 40000))) end
print(millionths(direct_euler(nil, 2.5, 20000)) .. " " .. millionths(direct_midpoint(nil, 2.5, 20000)))
print(millionths(direct_runge_kutta(nil, 2.5, 20000)) .. " " .. millionths(direct_anneal(nil, 2.5, 20000)))
