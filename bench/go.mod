module snip/bench

go 1.26.0
