package web

import "time"

// problem is an answer that refuses, in the format of RFC 9457.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`

	retryAfter time.Duration // above zero on every 429 and 503
	allow      string        // the Allow header of a 405
}
