package web

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
	"pgregory.net/rapid"
)

func (s *site) get(target string) *httptest.ResponseRecorder {
	return s.do(call{method: http.MethodGet, target: target})
}

// decodeQR reads a picture with a decoder that shares no code with the encoder.
func decodeQR(t rapid.TB, picture image.Image) (text, level string) {
	t.Helper()
	bitmap, err := gozxing.NewBinaryBitmapFromImage(picture)
	if err != nil {
		t.Fatal(err)
	}
	result, err := qrcode.NewQRCodeReader().Decode(bitmap, map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_PURE_BARCODE: true})
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	level, _ = result.GetResultMetadata()[gozxing.ResultMetadataType_ERROR_CORRECTION_LEVEL].(string)
	return result.GetText(), level
}

// drawing is an SVG as a reader of XML finds it.
type drawing struct {
	XMLName   xml.Name `xml:"http://www.w3.org/2000/svg svg"`
	Width     int      `xml:"width,attr"`
	Height    int      `xml:"height,attr"`
	ViewBox   string   `xml:"viewBox,attr"`
	Rendering string   `xml:"shape-rendering,attr"`
	Title     string   `xml:"title"`
	Rect      struct {
		Width  int    `xml:"width,attr"`
		Height int    `xml:"height,attr"`
		Fill   string `xml:"fill,attr"`
	} `xml:"rect"`
	Path struct {
		D string `xml:"d,attr"`
	} `xml:"path"`

	side int // of the view box
}

var (
	elements = regexp.MustCompile(`<([a-zA-Z!?]+)`)
	runs     = regexp.MustCompile(`M(\d+) (\d+)h(\d+)v1h-(\d+)z`)
)

func readSVG(t rapid.TB, body []byte) drawing {
	t.Helper()
	var d drawing
	if err := xml.Unmarshal(body, &d); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	var names []string
	for _, match := range elements.FindAllSubmatch(body, -1) {
		names = append(names, string(match[1]))
	}
	if !slices.Equal(names, []string{"svg", "title", "rect", "path"}) {
		t.Fatalf("elements %q", names)
	}
	if _, err := fmt.Sscanf(d.ViewBox, "0 0 %d", &d.side); err != nil || d.ViewBox != fmt.Sprintf("0 0 %d %[1]d", d.side) {
		t.Fatalf("viewBox %q", d.ViewBox)
	}
	if d.Rendering != "crispEdges" || d.Height != d.Width || d.Rect.Width != d.side || d.Rect.Height != d.side || d.Rect.Fill != "#fff" {
		t.Fatalf("drawing %+v", d)
	}
	return d
}

// modules paints the path, a pixel for each unit of the view box.
func (d drawing) modules(t rapid.TB) *image.Gray {
	t.Helper()
	picture := image.NewGray(image.Rect(0, 0, d.side, d.side))
	for i := range picture.Pix {
		picture.Pix[i] = 255
	}
	var read strings.Builder
	for _, run := range runs.FindAllStringSubmatch(d.Path.D, -1) {
		read.WriteString(run[0])
		var n [4]int
		for i := range n {
			n[i], _ = strconv.Atoi(run[i+1])
		}
		if n[2] != n[3] || n[0]+n[2] > d.side || n[1] >= d.side {
			t.Fatalf("run %s in a square of %d", run[0], d.side)
		}
		for x := n[0]; x < n[0]+n[2]; x++ {
			picture.SetGray(x, n[1], color.Gray{})
		}
	}
	if read.String() != d.Path.D {
		t.Fatalf("not understood: the path %s", d.Path.D)
	}
	return picture
}

// inked is the rectangle of the dark pixels.
func inked(picture *image.Gray) image.Rectangle {
	r := image.Rectangle{Min: picture.Rect.Max}
	for i, shade := range picture.Pix {
		if x, y := i%picture.Stride, i/picture.Stride; shade == 0 {
			r.Min.X, r.Min.Y = min(r.Min.X, x), min(r.Min.Y, y)
			r.Max.X, r.Max.Y = max(r.Max.X, x+1), max(r.Max.Y, y+1)
		}
	}
	return r
}

// wantSharp checks that the picture shows the modules, each as the same number of
// whole pixels and as large as they can be, in the middle.
func wantSharp(t rapid.TB, body []byte, size int, modules *image.Gray) image.Image {
	t.Helper()
	decoded, err := png.Decode(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	paletted, ok := decoded.(*image.Paletted)
	if !ok || !slices.Equal(paletted.Palette, color.Palette{color.RGBA{R: 255, G: 255, B: 255, A: 255}, color.RGBA{A: 255}}) {
		t.Fatalf("a picture in %T, want white and black", decoded)
	}
	picture := image.NewGray(image.Rect(0, 0, size, size))
	if paletted.Rect != picture.Rect {
		t.Fatalf("bounds %v, want %d", paletted.Rect, size)
	}
	for i, index := range paletted.Pix {
		picture.Pix[i] = 255 * (1 - index)
	}
	code, scale := inked(modules), size/modules.Rect.Dx()
	ink := inked(picture)
	if ink.Dx() != code.Dx()*scale || ink.Dy() != ink.Dx() {
		t.Fatalf("the code covers %v of %d, want %d pixels for each of %d modules", ink, size, scale, code.Dx())
	}
	if ink.Min.X != ink.Min.Y || size-ink.Max.X-ink.Min.X > 1 || size-ink.Max.X < ink.Min.X {
		t.Fatalf("the code at %v is not in the middle of %d", ink, size)
	}
	for y := ink.Min.Y; y < ink.Max.Y; y++ {
		for x := ink.Min.X; x < ink.Max.X; x++ {
			want := modules.GrayAt((x-ink.Min.X)/scale+code.Min.X, (y-ink.Min.Y)/scale+code.Min.Y)
			if got := picture.GrayAt(x, y); got != want {
				t.Fatalf("pixel %d, %d: %v, want %v", x, y, got, want)
			}
		}
	}
	return picture
}

// wantQR fetches both pictures, reads them and compares all that can be seen. It
// returns how many modules a side has, margins included.
func wantQR(t rapid.TB, s *site, slug, query, short string, size, margin int, level string) int {
	t.Helper()
	w := s.get("/" + slug + "/qr.svg?" + query)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", query, w.Code, w.Body)
	}
	d := readSVG(t, w.Body.Bytes())
	modules := d.modules(t)
	if ink := inked(modules); d.Width != size || ink != image.Rect(margin, margin, d.side-margin, d.side-margin) {
		t.Fatalf("%s: width %d, a code at %v in %d", query, d.Width, ink, d.side)
	}
	text, got := decodeQR(t, modules)
	if text != short || d.Title != short || strings.Index("LMQH", got) < strings.Index("LMQH", level) {
		t.Fatalf("%s: the SVG holds %q, level %q, title %q; want %q, %s", query, text, got, d.Title, short, level)
	}

	w = s.get("/" + slug + "/qr.png?" + query)
	if size < d.side {
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), fmt.Sprintf("size must be at least %d ", d.side)) {
			t.Fatalf("%s: a PNG of a code of %d: %d %s", query, d.side, w.Code, w.Body)
		}
		return d.side
	}
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", query, w.Code, w.Body)
	}
	picture := wantSharp(t, w.Body.Bytes(), size, modules)
	if text, again := decodeQR(t, picture); text != short || again != got {
		t.Fatalf("%s: the PNG holds %q, level %q", query, text, again)
	}
	return d.side
}
