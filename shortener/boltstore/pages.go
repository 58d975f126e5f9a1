package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"

	"go.etcd.io/bbolt"
)

// bbolt trusts the pages that it reads. In a damaged file it follows pages that
// form a cycle until the stack overflows, which ends the process and cannot be
// recovered from. So before bbolt walks a file that may be damaged, every page is
// read here as it lies on the disk: each must be used once or be free, with keys
// in order and within its bounds. The format is that of bbolt's internal/common.

const (
	pageHeader  = 16 // id, kind, count, how many more pages it takes
	pageElement = 16
	bucketSize  = 16 // root and sequence, before the page of a small bucket
	metaSize    = 64

	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10

	noFreelist = ^uint64(0)

	// mostDepth is more than any tree of pages reaches: each level holds at least
	// twice what the next does.
	mostDepth = 64
)

// order is the machine's: bbolt maps its pages into memory as they are.
var order = binary.NativeEndian

// errPages means that pages are not as bbolt writes them.
var errPages = errors.New("its pages are damaged")

// checkPages returns the first thing that is wrong with the pages of the
// transaction's file, which is open for reading only.
func checkPages(tx *bbolt.Tx, file io.ReaderAt) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w: %w", errPages, err)
		}
	}()
	w := pageWalk{file: file, size: tx.DB().Info().PageSize}
	meta, err := w.meta(uint64(tx.ID()))
	if err != nil {
		return err
	}
	root, freelist := order.Uint64(meta[16:]), order.Uint64(meta[32:])
	// An id that is no page of a file of this size would take too much memory here.
	if high := uint64(tx.Size() / int64(w.size)); order.Uint64(meta[40:]) == high {
		w.met = make([]bool, high)
	}
	if err := w.tree(root, keyRange{}, 0); err != nil {
		return err
	}
	if freelist == noFreelist {
		return nil
	}
	if err := w.free(freelist); err != nil {
		return err
	}
	for id := 2; id < len(w.met); id++ {
		if !w.met[id] {
			return fmt.Errorf("page %d is neither used nor free", id)
		}
	}
	return nil
}

// pageWalk reads the pages of one commit.
type pageWalk struct {
	file io.ReaderAt
	size int    // of a page
	met  []bool // by page; those that were read
}

// meta returns the head of the commit.
func (w *pageWalk) meta(commit uint64) ([]byte, error) {
	for page := range int64(2) {
		raw := make([]byte, metaSize)
		if _, err := w.file.ReadAt(raw, page*int64(w.size)+pageHeader); err != nil {
			return nil, err
		}
		sum := fnv.New64a()
		sum.Write(raw[:metaSize-8])
		if order.Uint64(raw[48:]) == commit && order.Uint64(raw[metaSize-8:]) == sum.Sum64() {
			return raw, nil
		}
	}
	return nil, errors.New("the head of the newest commit is gone")
}

// page is a page as it was read, with the pages that it overflows into.
type page struct {
	name  string // for errors
	kind  uint16
	count int
	raw   []byte
}

func (w *pageWalk) page(id uint64) (page, error) {
	if id < 2 || id >= uint64(len(w.met)) {
		return page{}, fmt.Errorf("page %d does not exist", id)
	}
	raw := make([]byte, pageHeader)
	if _, err := w.file.ReadAt(raw, int64(id)*int64(w.size)); err != nil {
		return page{}, fmt.Errorf("page %d: %w", id, err)
	}
	if found := order.Uint64(raw); found != id {
		return page{}, fmt.Errorf("page %d says that it is page %d", id, found)
	}
	more := uint64(order.Uint32(raw[12:]))
	if more >= uint64(len(w.met))-id {
		return page{}, fmt.Errorf("page %d goes beyond the end", id)
	}
	for part := id; part <= id+more; part++ {
		if err := w.meet(part); err != nil {
			return page{}, err
		}
	}
	raw = make([]byte, (1+int(more))*w.size)
	if _, err := w.file.ReadAt(raw, int64(id)*int64(w.size)); err != nil {
		return page{}, fmt.Errorf("page %d: %w", id, err)
	}
	return newPage(fmt.Sprintf("page %d", id), raw), nil
}

func newPage(name string, raw []byte) page {
	return page{name, order.Uint16(raw[8:]), int(order.Uint16(raw[10:])), raw}
}

func (w *pageWalk) meet(id uint64) error {
	if w.met[id] {
		return fmt.Errorf("page %d is used twice", id)
	}
	w.met[id] = true
	return nil
}

// keyRange is where keys may lie. Without a low or a high end there is none.
type keyRange struct{ low, high []byte }

// tree checks a page and all below it.
func (w *pageWalk) tree(id uint64, keys keyRange, depth int) error {
	if depth > mostDepth {
		return fmt.Errorf("page %d lies too deep", id)
	}
	p, err := w.page(id)
	if err != nil {
		return err
	}
	if p.kind != branchPage {
		return w.leaf(p, keys, depth)
	}
	if p.count == 0 {
		return fmt.Errorf("%s is empty", p.name)
	}
	at := make([][]byte, p.count+1) // with the high end behind the last
	at[p.count] = keys.high
	for i := range p.count {
		element, err := p.element(i)
		if err != nil {
			return err
		}
		if at[i], err = p.part(i, order.Uint32(element), 0, order.Uint32(element[4:])); err != nil {
			return err
		}
	}
	if err := p.ascending(at[:p.count], keys); err != nil {
		return err
	}
	for i := range p.count {
		element, err := p.element(i)
		if err != nil {
			return err
		}
		if err := w.tree(order.Uint64(element[8:]), keyRange{at[i], at[i+1]}, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// leaf checks a page of keys and values, and the buckets among them.
func (w *pageWalk) leaf(p page, keys keyRange, depth int) error {
	if p.kind != leafPage {
		return fmt.Errorf("%s is of the unknown kind %#x", p.name, p.kind)
	}
	at := make([][]byte, p.count)
	for i := range p.count {
		element, err := p.element(i)
		if err != nil {
			return err
		}
		position, keySize := order.Uint32(element[4:]), order.Uint32(element[8:])
		if at[i], err = p.part(i, position, 0, keySize); err != nil {
			return err
		}
		value, err := p.part(i, position, keySize, order.Uint32(element[12:]))
		if err != nil {
			return err
		}
		if order.Uint32(element)&1 == 0 {
			continue // no bucket
		}
		if err := w.bucket(fmt.Sprintf("the bucket %q in %s", at[i], p.name), value, depth+1); err != nil {
			return err
		}
	}
	return p.ascending(at, keys)
}

// bucket checks a bucket, which has a tree of its own or one page within its value.
func (w *pageWalk) bucket(name string, value []byte, depth int) error {
	if len(value) < bucketSize {
		return fmt.Errorf("%s has no root", name)
	}
	if root := order.Uint64(value); root != 0 {
		return w.tree(root, keyRange{}, depth)
	}
	if len(value) < bucketSize+pageHeader || depth > mostDepth {
		return fmt.Errorf("%s has no page", name)
	}
	return w.leaf(newPage(name, value[bucketSize:]), keyRange{}, depth)
}

// free checks the list of free pages and meets each of them.
func (w *pageWalk) free(id uint64) error {
	p, err := w.page(id)
	if err != nil {
		return err
	}
	if p.kind != freelistPage {
		return fmt.Errorf("%s is not the list of free pages", p.name)
	}
	ids, count := p.raw[pageHeader:], uint64(p.count)
	if count == 0xffff { // more than fits: the first entry says how many
		count, ids = order.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids)/8) {
		return fmt.Errorf("%s lists more free pages than it holds", p.name)
	}
	for i := range count {
		free := order.Uint64(ids[8*i:])
		if free < 2 || free >= uint64(len(w.met)) {
			return fmt.Errorf("the free page %d does not exist", free)
		}
		if err := w.meet(free); err != nil {
			return err
		}
	}
	return nil
}

// element returns the head of the i-th element.
func (p page) element(i int) ([]byte, error) {
	start := pageHeader + pageElement*i
	if start+pageElement > len(p.raw) {
		return nil, fmt.Errorf("%s has more elements than it holds", p.name)
	}
	return p.raw[start : start+pageElement], nil
}

// part returns size bytes that begin at a position, which counts from the i-th
// element, and skip bytes behind it.
func (p page) part(i int, position, skip, size uint32) ([]byte, error) {
	start := uint64(pageHeader+pageElement*i) + uint64(position) + uint64(skip)
	if start+uint64(size) > uint64(len(p.raw)) {
		return nil, fmt.Errorf("element %d of %s goes beyond its end", i, p.name)
	}
	return p.raw[start : start+uint64(size)], nil
}

func (p page) ascending(at [][]byte, keys keyRange) error {
	for i, key := range at {
		if len(key) == 0 || i > 0 && bytes.Compare(at[i-1], key) >= 0 ||
			bytes.Compare(key, keys.low) < 0 || keys.high != nil && bytes.Compare(key, keys.high) >= 0 {
			return fmt.Errorf("key %d of %s is out of order", i, p.name)
		}
	}
	return nil
}
