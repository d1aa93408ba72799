-- wrk: every request asks for something else, so that no answer is kept.
local n = 0
request = function()
    n = n + 1
    return wrk.format("GET", "/api/v1/report?window=" .. window .. "&filter=namespace!%3Dnone" .. n)
end
function init(args)
    window = args[1]
end
