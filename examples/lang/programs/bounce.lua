-- Bounce: a hundred balls in a box. The result is how often they hit its walls in 50 steps.
local rounds = 13000
local function next(random)
    random.seed = (random.seed * 1309 + 13849) % 65536
    return random.seed
end
local function ball(random)
    local x = next(random) % 500
    local y = next(random) % 500
    local dx = next(random) % 300 - 150
    local dy = next(random) % 300 - 150
    return {x = x, y = y, dx = dx, dy = dy}
end
local function positive(n)
    if n < 0 then return -n end
    return n
end
local function bounce(ball)
    local hit = false
    ball.x = ball.x + ball.dx
    ball.y = ball.y + ball.dy
    if ball.x > 500 then
        ball.x = 500
        ball.dx = 0 - positive(ball.dx)
        hit = true
    end
    if ball.x < 0 then
        ball.x = 0
        ball.dx = positive(ball.dx)
        hit = true
    end
    if ball.y > 500 then
        ball.y = 500
        ball.dy = 0 - positive(ball.dy)
        hit = true
    end
    if ball.y < 0 then
        ball.y = 0
        ball.dy = positive(ball.dy)
        hit = true
    end
    return hit
end
local function benchmark()
    local random = {seed = 74755}
    local balls = {}
    for i = 0, 99 do balls[#balls + 1] = ball(random) end
    local hits = 0
    for step = 0, 49 do
        for i = 0, #balls - 1 do
            if bounce(balls[i + 1]) then hits = hits + 1 end
        end
    end
    return hits
end
for round = 0, rounds - 1 do
    if benchmark() ~= 1331 then error("the balls hit the walls another number of times", 0) end
end
print(benchmark())
