package blocklist

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"snip/shortener"
)

// TestCost loads a hosts file of 200,000 names, weighs it and asks it. It is not
// parallel: others would take its time and memory.
func TestCost(t *testing.T) {
	var text strings.Builder
	const names = 200_000
	for i := range names {
		fmt.Fprintf(&text, "0.0.0.0 www.tracker-%d.example.com\n", i)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	list, report, err := Parse(strings.NewReader(text.String()))
	load := time.Since(start)
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(&text)
	if err != nil || report != (Report{Names: names}) {
		t.Fatalf("got %+v and %v", report, err)
	}
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	if size := len(list.tables[0]) * 8; size > 13*names || grown < 11*names || grown > 16*names {
		t.Errorf("%d names take %d bytes, and the heap has grown by %d", names, size, grown)
	}
	for tries := 0; load > time.Second && tries < 2; tries++ { // the machine may be busy with something else
		start = time.Now()
		if _, _, err := Parse(strings.NewReader(text.String())); err != nil {
			t.Fatal(err)
		}
		load = min(load, time.Since(start))
	}
	t.Logf("%d names: loaded in %v, %.1f bytes each", names, load, float64(grown)/names)
	if load > time.Second && !raceDetector {
		t.Errorf("%d names took %v to load", names, load)
	}
	for destination, want := range map[string]bool{
		"https://www.tracker-777.example.com/x":              true,
		"https://a.b.www.tracker-777.example.com/x":          true,
		"https://www.example.org/a/longer/path?with=a&query": false,
		"https://" + strings.Repeat("a.", 120) + "example":   false,
		"https://192.0.2.7/":                                 false,
	} {
		const asked = 100_000
		host := shortener.HostOf(destination)
		start := time.Now()
		for range asked {
			if list.Blocks(host) != want {
				t.Fatalf("%s: got %t", host, !want)
			}
		}
		each := time.Since(start) / asked
		start = time.Now()
		for range asked {
			shortener.HostOf(destination)
		}
		t.Logf("%.40s: %v, and %v to find the host", host, each, time.Since(start)/asked)
		if each > time.Microsecond && !raceDetector {
			t.Errorf("%s took %v each time", host, each)
		}
	}
	runtime.KeepAlive(list)
}

func TestParseIsBounded(t *testing.T) {
	t.Parallel()
	const text = "a.example\nb.example\n"
	if list, _, err := parse(strings.NewReader(text), int64(len(text))); err != nil || !list.Blocks("b.example") {
		t.Errorf("at the bound: %v", err)
	}
	if list, _, err := parse(strings.NewReader(text), int64(len(text))-1); list != nil || err == nil || err.Error() != "has more than 19 bytes" {
		t.Errorf("above the bound: %v", err)
	}
	if maxSize != 256<<20 {
		t.Errorf("the bound is %d, and the documents say 256 MiB", maxSize)
	}
}
