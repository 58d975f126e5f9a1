package main

import "testing"

func TestPopularity(t *testing.T) {
	t.Parallel()
	const links, n = 100_000, 200_000
	seen := map[int]int{}
	draw := byPopularity(links, 1)
	for range n {
		i := draw()
		if i < 0 || i >= int(links) {
			t.Fatalf("link %d is drawn", i)
		}
		seen[i]++
	}
	first := float64(seen[0])
	for rank, share := range []float64{1, 0.5, 0.33} {
		if got := float64(seen[rank*7_368_787%int(links)]) / first; got < share*0.9 || got > share*1.1 {
			t.Errorf("rank %d is drawn %.2f times as often as the first, want about %.2f", rank, got, share)
		}
	}
}

// All alike: each tenth of the links has about a tenth of the draws, and no list
// repeats the one before.
func TestUniform(t *testing.T) {
	t.Parallel()
	const links, n = 1000, 100_000
	var tenths [10]int
	draw := uniformly(links, 2)
	var lists [2][20]int
	for i := range n {
		link := draw()
		tenths[link/100]++
		if i < 40 {
			lists[i/20][i%20] = link
		}
	}
	for i, got := range tenths {
		if got < n/10*95/100 || got > n/10*105/100 {
			t.Errorf("tenth %d: %d of %d draws", i, got, n)
		}
	}
	if lists[0] == lists[1] {
		t.Error("the second list is the first again")
	}
}
