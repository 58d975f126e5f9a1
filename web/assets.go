package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/tdewolff/minify/v2"
	"github.com/tdewolff/minify/v2/css"
	"github.com/tdewolff/minify/v2/js"

	"snip/shortener"
	"snip/static"
)

// asset is a file of package static, ready to be sent.
type asset struct {
	mediaType string
	etag      string
	content   []byte
}

// loadAssets reads every file once, and takes out of scripts and style sheets what
// only their readers need. Its media types are written down here and not asked of
// package mime, which lets the machine's own tables overrule it.
func loadAssets() (map[string]asset, error) {
	types := map[string]string{
		".css": "text/css; charset=utf-8",
		".js":  "text/javascript; charset=utf-8",
		".svg": "image/svg+xml",
		".png": "image/png",
		".ico": "image/vnd.microsoft.icon",
	}
	minifier := minify.New()
	minifier.Add("text/css", &css.Minifier{})
	minifier.Add("text/javascript", &js.Minifier{KeepVarNames: true}) // scripts share theirs
	assets := make(map[string]asset)
	err := fs.WalkDir(static.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		mediaType, ok := types[path.Ext(name)]
		if !ok {
			return fmt.Errorf("static file %s: unknown media type", name)
		}
		content, err := static.Files.ReadFile(name)
		if err != nil {
			return err
		}
		kind, _, _ := strings.Cut(mediaType, ";")
		if content, err = minifier.Bytes(kind, content); err != nil && !errors.Is(err, minify.ErrNotExist) {
			return fmt.Errorf("static file %s: %w", name, err)
		}
		assets[name] = newAsset(mediaType, content)
		return nil
	})
	return assets, err
}

func newAsset(mediaType string, content []byte) asset {
	sum := sha256.Sum256(content)
	return asset{mediaType: mediaType, etag: `"` + hex.EncodeToString(sum[:8]) + `"`, content: content}
}

// asset serves a file.
func (s *server) asset(w http.ResponseWriter, r *http.Request) error {
	a, ok := s.assets[strings.TrimPrefix(r.URL.Path, "/-/")]
	if !ok {
		return shortener.ErrNotFound
	}
	a.serve(w, r)
	return nil
}

// serve answers with the content. A browser or cache keeps it and asks each time whether it
// is still the one, so that a new version never meets old assets, and a link that was
// deleted has no picture.
func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", a.mediaType)
	h.Set("ETag", a.etag)
	h.Set("Cache-Control", "no-cache")
	h["X-Content-Type-Options"] = noSniff
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.content))
}
