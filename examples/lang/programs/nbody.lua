-- NBody: planets, which are objects with fields that hold doubles. The results are the energies
-- before and after 1000 steps, in millionths.
local rounds = 6000
local floor = math.floor
local sqrt = math.sqrt
local function body(x, y, z, vx, vy, vz, mass)
    return {x = x, y = y, z = z, vx = vx, vy = vy, vz = vz, mass = mass}
end
local function advance(bodies, dt)
    local n = #bodies
    for i = 0, n - 1 do
        local a = bodies[i + 1]
        for j = i + 1, n - 1 do
            local b = bodies[j + 1]
            local dx = a.x - b.x
            local dy = a.y - b.y
            local dz = a.z - b.z
            local d2 = dx * dx + dy * dy + dz * dz
            local mag = dt / (d2 * sqrt(d2))
            local ma = a.mass * mag
            local mb = b.mass * mag
            a.vx = a.vx - dx * mb
            a.vy = a.vy - dy * mb
            a.vz = a.vz - dz * mb
            b.vx = b.vx + dx * ma
            b.vy = b.vy + dy * ma
            b.vz = b.vz + dz * ma
        end
    end
    for i = 0, n - 1 do
        local a = bodies[i + 1]
        a.x = a.x + dt * a.vx
        a.y = a.y + dt * a.vy
        a.z = a.z + dt * a.vz
    end
end
local function energy(bodies)
    local e = 0
    for i = 0, #bodies - 1 do
        local a = bodies[i + 1]
        e = e + 0.5 * a.mass * (a.vx * a.vx + a.vy * a.vy + a.vz * a.vz)
        for j = i + 1, #bodies - 1 do
            local b = bodies[j + 1]
            local dx = a.x - b.x
            local dy = a.y - b.y
            local dz = a.z - b.z
            e = e - a.mass * b.mass / sqrt(dx * dx + dy * dy + dz * dz)
        end
    end
    return e
end
local function benchmark(steps)
    local bodies = {}
    bodies[#bodies + 1] = body(0, 0, 0, 0, 0.0001, 0, 39.5)
    bodies[#bodies + 1] = body(4.8, -1.2, -0.1, 0.6, 2.8, -0.02, 0.04)
    bodies[#bodies + 1] = body(8.3, 4.1, -0.4, -1.0, 1.8, 0.008, 0.01)
    bodies[#bodies + 1] = body(12.9, -15.1, -0.2, 1.1, 0.9, -0.01, 0.0017)
    bodies[#bodies + 1] = body(15.4, -25.9, 0.2, 1.0, 0.6, -0.03, 0.002)
    for step = 0, steps - 1 do advance(bodies, 0.001) end
    return floor(energy(bodies) * 1000000)
end
local after = benchmark(1000)
for round = 0, rounds - 1 do
    if benchmark(1000) ~= after then error("the energy is another", 0) end
end
print(benchmark(0))
print(after)
