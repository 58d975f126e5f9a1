package web

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/maypok86/otter/v2"
	qr "github.com/piglig/go-qr"
)

// The bounds of a picture: its side in pixels, and its quiet zone in modules.
const (
	minQRSize   = 64
	maxQRSize   = 1024
	maxQRMargin = 16
)

// qrOptions are what a picture may differ in.
type qrOptions struct {
	size   int // of a side, in pixels
	margin int // the least quiet zone, in modules; ISO/IEC 18004 wants 4
	level  qr.Ecc
}

// picturesBytes bounds the pictures that are kept: a thousand or two.
const picturesBytes = 8 << 20

// pictureKey is all that a picture depends on.
type pictureKey struct {
	slug, suffix string
	qrOptions
}

func newPictures() (*otter.Cache[pictureKey, asset], error) {
	return otter.New(&otter.Options[pictureKey, asset]{
		MaximumWeight: picturesBytes,
		Weigher:       func(key pictureKey, a asset) uint32 { return uint32(256 + len(key.slug) + len(a.content)) },
	})
}

// qrPicture is a short URL's QR code and how large it is to be shown.
type qrPicture struct {
	short  string
	code   *qr.QrCode
	size   int
	margin int
}

// qrSVG answers with a picture that opens as a document too, and is inert there.
func (s *server) qrSVG(w http.ResponseWriter, r *http.Request) error {
	picture, err := s.qr(r, "/qr.svg")
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set(securityPolicy, "default-src 'none'")
	h[robotsTag] = noIndex
	picture.serve(w, r)
	return nil
}

func (s *server) qrPNG(w http.ResponseWriter, r *http.Request) error {
	picture, err := s.qr(r, "/qr.png")
	if err != nil {
		return err
	}
	w.Header()[robotsTag] = noIndex
	picture.serve(w, r)
	return nil
}

// qr returns the picture that a request asks for. It is no visit, and holds the
// public URL whatever host the request names. No punctuation is left off the
// slug: this address is made by programs, not torn out of a sentence.
func (s *server) qr(r *http.Request, suffix string) (picture asset, err error) {
	o, err := readQROptions(r.URL.RawQuery)
	if err != nil {
		return picture, err
	}
	slug := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/"), suffix)
	if _, _, err := lookUp(r.Context(), s.service.Look, slug); err != nil {
		return picture, err
	}
	key := pictureKey{slug, suffix, o}
	picture, kept := s.pictures.GetIfPresent(key)
	if kept {
		return picture, nil
	}
	err = s.paced(r, func() (err error) {
		if picture, kept = s.pictures.GetIfPresent(key); kept {
			return nil
		}
		if picture, err = draw(s.short+slug, suffix, o); err == nil {
			s.pictures.Set(key, picture)
		}
		return err
	})
	return picture, err
}

func draw(short, suffix string, o qrOptions) (asset, error) {
	code, err := qr.EncodeText(short, o.level)
	switch {
	case errors.Is(err, qr.ErrDataTooLong) && o.level != qr.Low:
		return asset{}, invalidRequest(say("qr.level_too_high"))
	case err != nil:
		return asset{}, fmt.Errorf("QR code: %w", err)
	}
	p := &qrPicture{short: short, code: code, size: o.size, margin: o.margin}
	if suffix == "/qr.svg" {
		return newAsset("image/svg+xml", p.svg()), nil
	}
	body, err := p.png()
	return newAsset("image/png", body), err
}

// readQROptions reads a query. It is strict, so that nobody prints a picture that
// differs from the one that was asked for.
func readQROptions(query string) (qrOptions, error) {
	o := qrOptions{size: 256, margin: 4, level: qr.Medium}
	values, err := url.ParseQuery(query)
	if err != nil {
		return o, invalidRequest(say("qr.query", "Example", "size=256&margin=4&level=M"))
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		var (
			err   error
			value = values[name][0]
		)
		switch name {
		case "size":
			o.size, err = wholeNumber(name, value, minQRSize, maxQRSize)
		case "margin":
			o.margin, err = wholeNumber(name, value, 0, maxQRMargin)
		case "level":
			o.level, err = qrLevel(value)
		case "lang": // of a refusal
			continue
		default:
			err = invalidRequest(say("qr.unknown", "Name", quoted(name)))
		}
		if err != nil {
			return o, err
		}
		if len(values[name]) > 1 {
			return o, invalidRequest(say("qr.twice", "Name", name))
		}
	}
	return o, nil
}

func wholeNumber(name, text string, low, high int) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || int(n) < low || int(n) > high {
		return 0, invalidRequest(say("qr.number", "Name", name, "Min", low, "Max", high))
	}
	return int(n), nil
}

// qrLevel reads how much of a code may be damaged, from 7 to 30 in a hundred. The
// encoder goes above it where that makes no code larger.
func qrLevel(text string) (qr.Ecc, error) {
	switch text {
	case "L":
		return qr.Low, nil
	case "M":
		return qr.Medium, nil
	case "Q":
		return qr.Quartile, nil
	case "H":
		return qr.High, nil
	}
	return 0, invalidRequest(say("qr.level"))
}

// svg draws one unit per module. The library's own has no title, and its edges
// are blurred where a module is not a whole number of pixels.
func (p *qrPicture) svg() []byte {
	side := p.code.Size()
	all := side + 2*p.margin
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%[1]d" viewBox="0 0 %d %[2]d" role="img" shape-rendering="crispEdges">`, p.size, all)
	fmt.Fprintf(&b, "\n<title>%s</title>\n<rect width=\"%d\" height=\"%[2]d\" fill=\"#fff\"/>\n<path d=\"", html.EscapeString(p.short), all)
	for y := range side {
		for x := 0; x < side; {
			run := 0
			for x+run < side && p.code.Module(x+run, y) {
				run++
			}
			if run > 0 {
				fmt.Fprintf(&b, "M%d %dh%dv1h-%[3]dz", p.margin+x, p.margin+y, run)
			}
			x += run + 1 // what ended the run is light
		}
	}
	b.WriteString("\"/>\n</svg>\n")
	return b.Bytes()
}

// png draws each module as the same number of whole pixels, since a scaled one
// is harder to scan. What is left over widens the margin.
func (p *qrPicture) png() ([]byte, error) {
	side := p.code.Size()
	all := side + 2*p.margin
	scale := p.size / all
	if scale == 0 {
		return nil, invalidRequest(say("qr.size", "Min", all))
	}
	picture := image.NewPaletted(image.Rect(0, 0, p.size, p.size), color.Palette{color.White, color.Black})
	start := (p.size - scale*side) / 2
	for y := range side {
		rows := picture.Pix[(start+y*scale)*p.size:]
		for x := range side * scale {
			if p.code.Module(x/scale, y) {
				rows[start+x] = 1
			}
		}
		for i := range scale - 1 {
			copy(rows[(i+1)*p.size:], rows[:p.size])
		}
	}
	var b bytes.Buffer
	// A picture of two colours takes one bit a pixel.
	err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, picture)
	return b.Bytes(), err
}
