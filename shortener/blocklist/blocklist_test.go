package blocklist_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snip/shortener/blocklist"
)

func parse(t testing.TB, text string) *blocklist.List {
	t.Helper()
	list, _, err := blocklist.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestBlocksCoversWhatIsBelow(t *testing.T) {
	t.Parallel()
	list := parse(t, "a.example\nx.y.z.deep.example\n192.0.2.7\n2001:db8::7\nb.co.uk\n")
	for host, want := range map[string]bool{
		"a.example": true, "www.a.example": true, strings.Repeat("w.", 100) + "a.example": true, ".a.example": true,
		"aa.example": false, "a.example.org": false, "example": false, "": false, ".": false, "a": false,
		"x.y.z.deep.example": true, "w.x.y.z.deep.example": true, "y.z.deep.example": false, "deep.example": false,
		"192.0.2.7": true, "192.0.2.77": false, "2.7": false, "2001:db8::7": true, "2001:db8::77": false,
		"b.co.uk": true, "w.b.co.uk": true, "co.uk": false, "c.co.uk": false,
	} {
		if list.Blocks(host) != want {
			t.Errorf("%q: got %t", host, !want)
		}
	}
	var none blocklist.List
	if none.Blocks("a.example") || blocklist.Union().Blocks("a.example") {
		t.Error("an empty list blocks")
	}
}

// TestBlocksAsAMapDoes compares lists and their union with the plainest of sets.
func TestBlocksAsAMapDoes(t *testing.T) {
	t.Parallel()
	name := rapid.StringMatching(`[ab]{1,2}(\.[ab]{1,2}){1,6}`)
	rapid.Check(t, func(t *rapid.T) {
		listed := map[string]bool{}
		var lists []*blocklist.List
		for _, names := range rapid.SliceOfN(rapid.SliceOfN(name, 1, 20), 1, 3).Draw(t, "lists") {
			list, report, err := blocklist.Parse(strings.NewReader(strings.Join(names, "\n")))
			different := map[string]bool{}
			for _, n := range names {
				listed[n], different[n] = true, true
			}
			if err != nil || report.Names != len(different) {
				t.Fatalf("%+v, %v", report, err)
			}
			lists = append(lists, list)
		}
		union := blocklist.Union(lists...)
		for _, host := range rapid.SliceOfN(name, 1, 50).Draw(t, "hosts") {
			want := false
			for rest, more := host, true; more && !want; _, rest, more = strings.Cut(rest, ".") {
				want = listed[rest]
			}
			if union.Blocks(host) != want {
				t.Fatalf("%s: want %t", host, want)
			}
		}
	})
}

func TestBlocksEveryNameOfALongList(t *testing.T) {
	t.Parallel()
	const names = 50_000
	list := parse(t, hosts(names))
	for i := range names {
		if name := listed(i); !list.Blocks(name) || !list.Blocks("x."+name) || list.Blocks("x"+name) {
			t.Fatalf("%s is read wrongly", name)
		}
	}
}

func TestBlocksTakesNoMemory(t *testing.T) {
	list := blocklist.Union(parse(t, hosts(1000)), blocklist.Shorteners())
	if n := testing.AllocsPerRun(100, func() { list.Blocks("a.b.c.other.example") }); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}

func TestShorteners(t *testing.T) {
	t.Parallel()
	list := blocklist.Shorteners()
	for _, host := range []string{"bit.ly", "tinyurl.com", "preview.tinyurl.com", "t.co", "is.gd", "lnkd.in", "ow.ly", "cutt.ly"} {
		if !list.Blocks(host) {
			t.Errorf("%s passes", host)
		}
	}
	for _, host := range []string{"youtu.be", "maps.app.goo.gl", "linktr.ee", "example.org", "t.me", "short.io"} {
		if list.Blocks(host) {
			t.Errorf("%s is blocked", host)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	text := hosts(200_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		parse(b, text)
	}
}

func BenchmarkBlocks(b *testing.B) {
	one := parse(b, hosts(200_000))
	four := blocklist.Union(one, parse(b, hosts(100_000)), parse(b, hosts(50_000)), blocklist.Shorteners())
	for _, row := range []struct{ name, host string }{
		{"hit", listed(777)},
		{"below", "a.b." + listed(777)},
		{"miss", "www.example.org"},
		{"deep", strings.Repeat("a.", 120) + "example.org"},
	} {
		b.Run(row.name, func(b *testing.B) {
			for b.Loop() {
				one.Blocks(row.host)
			}
		})
		b.Run(row.name+" of four", func(b *testing.B) {
			for b.Loop() {
				four.Blocks(row.host)
			}
		})
	}
}
