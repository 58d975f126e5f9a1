package shortener

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"
)

// What waits to be stored is a copy: a slug and a host may be parts of requests of
// many kilobytes.
func TestRecorderHoldsNoRequests(t *testing.T) {
	t.Parallel()
	r := newRecorder()
	request := strings.Repeat("z", 100) + "my-slug" + "host.example" + strings.Repeat("z", 100)
	slug, host := Slug(request[100:107]), request[107:119]
	r.record(slug, Person, "2026-11-29", host)
	visits, _ := r.take()
	for kept, v := range visits {
		if unsafe.StringData(string(kept)) == unsafe.StringData(string(slug)) {
			t.Error("the slug is part of the request")
		}
		for keptHost := range v.Referrers {
			if keptHost != host || unsafe.StringData(keptHost) == unsafe.StringData(host) {
				t.Errorf("the host %q is part of the request", keptHost)
			}
		}
	}
	if len(visits) != 1 {
		t.Errorf("%d links", len(visits))
	}
}

// A flood of hosts is bounded over all links, and every visit is counted.
func TestRecorderBoundsHosts(t *testing.T) {
	t.Parallel()
	r := newRecorder()
	const links, hosts = 100, 2000
	for i := range links * hosts {
		r.record(Slug(fmt.Sprint("link-", i%links)), Person, "2026-11-29", fmt.Sprintf("h%d.example", i))
	}
	visits, dropped := r.take()
	kept, counted := 0, int64(0)
	for _, v := range visits {
		kept += len(v.Referrers)
		counted += v.Total()
	}
	if most := recorderShards * (pendingHosts + links); kept > most || dropped != 0 || counted != links*hosts {
		t.Errorf("%d hosts are kept, at most %d; %d visits counted, %d dropped", kept, most, counted, dropped)
	}
	r.record("link-1", Person, "2026-11-29", "again.example")
	if visits, _ := r.take(); visits["link-1"].Referrers["again.example"] != 1 {
		t.Error("after a flood no host is kept any more")
	}
}
