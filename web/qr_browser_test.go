package web_test

import (
	"bytes"
	"fmt"
	"image/png"
	"net/http"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
)

// TestBrowserQR opens the pictures in Chromium and reads them off the screen.
func TestBrowserQR(t *testing.T) {
	t.Parallel()
	browser := startChromium(t)
	s := openSite(t, siteConfig{daily: 50, prefix: "/to"})
	response, err := http.PostForm(s.origin+"/to/api/links", url.Values{"url": {"https://example.org/"}, "slug": {"An_example-of-a-slug"}})
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	short := s.origin + "/to/An_example-of-a-slug"
	if got := response.Header.Get("Location"); got != short {
		t.Fatalf("made %q, want %q", got, short)
	}
	v := openTab(t, browser, s.origin)
	for _, picture := range []string{"svg", "png"} {
		for _, row := range []struct {
			query string
			size  int64
			scale float64 // of the screen's pixels to the page's
		}{
			{"", 256, 1},
			{"?size=64&margin=4&level=L", 64, 3}, // a pixel and a half of the page for each module
			{"?size=500&margin=4&level=H", 500, 1},
			{"?size=1024&margin=16&level=Q", 1024, 1},
		} {
			if picture == "png" && row.scale > 1 {
				continue // a screen of more pixels blurs modules of one pixel each; TestQR reads the picture itself
			}
			v.do(chromedp.EmulateViewport(row.size, row.size, chromedp.EmulateScale(row.scale)), chromedp.Navigate(short+"/qr."+picture+row.query))
			if picture == "svg" {
				if title := get(v, chromedp.Evaluate[string](`document.title`)); title != short {
					t.Errorf("%s: the title is %q, want %q", row.query, title, short)
				}
				if box := get(v, chromedp.Evaluate[string](`['width', 'height'].map(side => document.documentElement.getBoundingClientRect()[side]).join()`)); box != fmt.Sprintf("%d,%[1]d", row.size) {
					t.Errorf("%s: shown as %s", row.query, box)
				}
			}
			if text, err := readScreen(t, get(v, chromedp.CaptureScreenshot())); text != short {
				t.Errorf("%s%s reads %q, %v, want %q", picture, row.query, text, err, short)
			}
		}
	}
}

// readScreen finds the code on a screenshot and reads it, as a phone would.
func readScreen(t *testing.T, screenshot []byte) (string, error) {
	t.Helper()
	screen, err := png.Decode(bytes.NewReader(screenshot))
	if err != nil {
		t.Fatal(err)
	}
	// The decoder misses one picture in hundreds where it has to find the code by its
	// corners, and then not where it is told that there is nothing else to see.
	bitmap, err := gozxing.NewBinaryBitmapFromImage(screen)
	if err != nil {
		t.Fatal(err)
	}
	for _, hint := range []gozxing.DecodeHintType{gozxing.DecodeHintType_TRY_HARDER, gozxing.DecodeHintType_PURE_BARCODE} {
		var result *gozxing.Result
		if result, err = qrcode.NewQRCodeReader().Decode(bitmap, map[gozxing.DecodeHintType]any{hint: true}); err == nil {
			return result.GetText(), nil
		}
	}
	return "", err
}
