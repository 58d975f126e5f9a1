package webrisk

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
)

// Why a call has failed. These are all the words that there are for it: the text of
// an error of net/http repeats what came back, which may repeat the request, and in
// that are the key and the destination.
var (
	errTimeout      = errors.New("it took too long")
	errLeft         = errors.New("nobody waited for it any more")
	errNoName       = errors.New("the name of the host was not found")
	errRefused      = errors.New("the connection was refused")
	errCertificate  = errors.New("the certificate of the host was not trusted")
	errNoTLS        = errors.New("there was no TLS")
	errNoConnection = errors.New("there was no connection")
	errClosed       = errors.New("the connection was closed before the whole answer")
	errNoHTTP       = errors.New("the answer was no HTTP")
)

// cause returns which of them an error of a call is, or the last where it is none
// that is known.
func cause(ctx context.Context, err, otherwise error) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return errLeft
	case ctx.Err() != nil, timedOut(err):
		return errTimeout
	case is[*net.DNSError](err):
		return errNoName
	case errors.Is(err, syscall.ECONNREFUSED):
		return errRefused
	case is[*tls.CertificateVerificationError](err):
		return errCertificate
	case is[tls.RecordHeaderError](err), is[tls.AlertError](err), errors.Is(err, http.ErrSchemeMismatch):
		return errNoTLS
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return errClosed
	}
	return otherwise
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func timedOut(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}
