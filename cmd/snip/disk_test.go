package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

const (
	pageSize   = 4096
	sectorSize = 512 // what a disk writes as a whole, or not at all
	metaPages  = 2   // bbolt's first pages, written in turn, say which commit is the newest
)

// eventKind is what happened to the data file, or to a client.
type eventKind int

const (
	eventWrite  eventKind = iota // data at offset
	eventResize                  // to offset
	eventFlush                   // what was written before is on the disk
	// eventFailedFlush is a flush that reported an error. Linux then takes the
	// pages for written: they are read as such, and no later flush tries again.
	eventFailedFlush
	eventAcknowledge // a client was told of the link data
)

type event struct {
	kind   eventKind
	data   string
	offset int64
}

// meta tells whether the event makes a commit the newest.
func (e event) meta() bool {
	return e.kind == eventWrite && e.offset < metaPages*pageSize && len(e.data) == pageSize
}

// eventsOf returns what a trace says of the data file, which alone the program
// writes at offsets and flushes, and of the answers that told of a link.
func eventsOf(calls []call) ([]event, error) {
	var events []event
	for _, c := range calls {
		failed := strings.HasPrefix(c.result, "-1 ")
		switch {
		case c.name == "write" && c.begun: // the client may have it from now on
			if slug, ok := slugIn(c.text); ok {
				events = append(events, event{kind: eventAcknowledge, data: slug})
			}
		case c.begun, c.name == "write":
		case c.name == "fdatasync", c.name == "fsync":
			kind := eventFlush
			if failed {
				kind = eventFailedFlush
			}
			events = append(events, event{kind: kind})
		case failed: // nothing was written
		case c.name == "pwrite64":
			if c.result != fmt.Sprint(len(c.text)) {
				return nil, fmt.Errorf("%d bytes were to be written, and strace saw %s", len(c.text), c.result)
			}
			events = append(events, event{eventWrite, c.text, c.number})
		case c.name == "ftruncate":
			events = append(events, event{kind: eventResize, offset: c.number})
		default:
			return nil, fmt.Errorf("%s was not to be traced", c.name)
		}
	}
	return events, nil
}

// slugIn returns the slug that an answer acknowledges.
func slugIn(answer string) (string, bool) {
	if !strings.HasPrefix(answer, "HTTP/1.1 201 ") {
		return "", false
	}
	_, rest, _ := strings.Cut(answer, "\r\nLocation: ")
	address, _, _ := strings.Cut(rest, "\r\n")
	return address[strings.LastIndex(address, "/")+1:], true
}

// apply does to the image what a write or resize did to the file.
func (e event) apply(image []byte) []byte {
	end := e.offset + int64(len(e.data))
	if e.kind == eventResize {
		image = image[:min(end, int64(len(image)))]
	}
	if missing := end - int64(len(image)); missing > 0 {
		image = append(image, make([]byte, missing)...)
	}
	copy(image[e.offset:], e.data)
	return image
}

// tear applies what a disk may have kept of a write that was not flushed: all,
// nothing, or some of its sectors.
func (e event) tear(image []byte, random *rand.Rand) []byte {
	switch random.IntN(3) {
	case 0:
		return image
	case 1:
		return e.apply(image)
	}
	for at := 0; at < len(e.data); at += sectorSize {
		if random.IntN(2) == 0 {
			sector := e.data[at:min(at+sectorSize, len(e.data))]
			image = event{eventWrite, sector, e.offset + int64(at)}.apply(image)
		}
	}
	return image
}

// cut returns what is on the disk after the events, when the power fails then:
// everything that was flushed, and of the rest whatever the disk had got to.
func cut(base []byte, events []event, random *rand.Rand) []byte {
	image := bytes.Clone(base)
	var waiting []event
	for _, e := range events {
		switch e.kind {
		case eventWrite, eventResize:
			waiting = append(waiting, e)
		case eventFlush:
			for _, w := range waiting {
				image = w.apply(image)
			}
			waiting = nil
		case eventFailedFlush:
			for _, w := range waiting {
				image = w.tear(image, random)
			}
			waiting = nil
		}
	}
	for _, w := range waiting {
		image = w.tear(image, random)
	}
	return image
}

// replay returns the file as the program sees it after the events.
func replay(base []byte, events []event) []byte {
	image := bytes.Clone(base)
	for _, e := range events {
		if e.kind == eventWrite || e.kind == eventResize {
			image = e.apply(image)
		}
	}
	return image
}

// durable returns how many of the events were complete on the disk at the end:
// those before the last flush that worked.
func durable(events []event) int {
	for i, e := range slices.Backward(events) {
		if e.kind == eventFlush {
			return i
		}
	}
	return 0
}
