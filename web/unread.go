package web

import (
	"io"
	"net/http"
	"time"
)

// maxBody bounds the body of a creation, in bytes.
const maxBody = 64 << 10

// bodyGrace is how long a connection waits, after the answer is out, for what is
// left of a body that nobody read.
const bodyGrace = 500 * time.Millisecond

// ambiguous reports whether a proxy in front may have seen the request end
// elsewhere than net/http does: a body in chunks may have come with a length as
// well, and HTTP/1.0 knows no chunks. net/http removes the header that it does not
// go by, so that the two cannot be told from honest ones here. What would follow
// on the connection may be a client's text and not the proxy's, so nothing does
// (RFC 9112, section 6.1).
func ambiguous(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.ProtoMinor == 0 || len(r.TransferEncoding) > 0
}

// unread lets answers leave before the body that they are about has come. By
// itself net/http reads up to 256 KiB of it first, and a client that dribbles is
// never refused at all.
//
// The connection is kept when the rest of a small body is there or comes soon,
// so that a refused client does not pay with a new connection each time.
// Otherwise it is closed, and must be: what still comes would be read as the
// client's next request. net/http does not see to that once a read deadline was
// set, because its own clean-up takes a timeout for the body's end.
func unread(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last := ambiguous(r)
		if last {
			w.Header().Set("Connection", "close")
		}
		if r.Body == nil || r.Body == http.NoBody || r.ProtoMajor != 1 {
			next.ServeHTTP(w, r)
			return
		}
		conn := http.NewResponseController(w)
		if conn.EnableFullDuplex() != nil { // not served by net/http: there is no connection to look after
			next.ServeHTTP(w, r)
			return
		}
		// Bodies whose rest is not worth waiting for. The answer announces the
		// close, unless the handler has read to the end by then.
		doubtful := !last && (r.ContentLength > maxBody || r.Header.Get("Expect") != "")
		body := &watchedBody{ReadCloser: r.Body, answer: w.Header(), doubtful: doubtful, closing: r.Close}
		if doubtful {
			body.answer.Set("Connection", "close")
		}
		// A copy, because net/http judges the connection by the request's own body.
		watched := *r
		watched.Body = body
		next.ServeHTTP(w, &watched)
		if !body.ended {
			leave(conn, body)
		}
	})
}

// leave ends a request whose body has not been read to its end.
//
// The deadline is real time: it is about a socket, not about a link.
func leave(conn *http.ResponseController, body *watchedBody) {
	if conn.SetReadDeadline(time.Now().Add(bodyGrace)) != nil {
		panic(http.ErrAbortHandler)
	}
	if body.answer.Get("Connection") == "close" && !body.closing {
		// net/http sends the answer, reads on until the deadline, so that the
		// client can finish writing and read it, and closes. Where the request itself
		// says that it closes, net/http does not read on.
		return
	}
	if conn.Flush() != nil {
		panic(http.ErrAbortHandler)
	}
	io.Copy(io.Discard, body)
	if !body.ended {
		panic(http.ErrAbortHandler) // the headers are out; only this closes the connection now
	}
}

// watchedBody knows whether a body has been read to its end.
type watchedBody struct {
	io.ReadCloser
	answer   http.Header // of the answer, where Connection says what becomes of the rest
	doubtful bool
	closing  bool // whether the client closes the connection after this request
	ended    bool
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		b.ended = true
		if b.doubtful {
			b.answer.Del("Connection")
		}
	case err != nil:
		b.answer.Set("Connection", "close")
	}
	return n, err
}
