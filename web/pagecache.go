package web

import (
	"bytes"
	"net/http"

	"github.com/maypok86/otter/v2"
)

// pageCacheBytes bounds the pages that are kept: some three hundred forms.
const pageCacheBytes = 4 << 20

// pageKey is what a page depends on that shows no link and nothing that was typed, besides
// the settings.
type pageKey struct {
	name      string // of the page, or of the sentence that it is about
	status    int
	language  int
	chosen    bool
	allowance allowanceLine
}

// pageCache holds rendered pages. It is safe for concurrent use.
type pageCache = otter.Cache[pageKey, []byte]

func newPageCache() *pageCache {
	return otter.Must(&otter.Options[pageKey, []byte]{
		MaximumWeight: pageCacheBytes,
		Weigher:       func(_ pageKey, page []byte) uint32 { return uint32(len(page)) },
	})
}

// writeCached writes the page of that key, and renders it in its turn where it is not kept.
func (s *server) writeCached(
	w http.ResponseWriter, r *http.Request, c choice, key pageKey, render func(*bytes.Buffer) error,
) error {
	key.language, key.chosen = c.index, c.chosen
	page, kept := s.pageCache.GetIfPresent(key)
	if !kept {
		var rendered bytes.Buffer
		if err := s.paced(r, func() error {
			if page, kept = s.pageCache.GetIfPresent(key); kept {
				return nil
			}
			return render(&rendered)
		}); err != nil {
			return err
		}
		if !kept {
			page = bytes.Clone(rendered.Bytes())
			s.pageCache.Set(key, page)
		}
	}
	c.announce(w.Header())
	write(w, r, key.status, mediaHTML, page)
	return nil
}
