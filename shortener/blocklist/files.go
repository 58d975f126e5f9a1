package blocklist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// attempts is how often a file that changes while it is read is read at once.
const attempts = 3

// Config says which lists [Files] holds.
type Config struct {
	Paths  []string
	Always []*List          // lists that come from no file, such as Shorteners
	Now    func() time.Time // stamps what is loaded
	Log    *slog.Logger     // is told what was loaded, what was left out, and why Watch could not load
}

// Files is what any of several files lists. A file that cannot be read, or that
// Parse refuses, leaves in place what was last read from it. The methods may be
// called at once.
type Files struct {
	always []*List
	now    func() time.Time
	log    *slog.Logger
	parse  func(io.Reader) (*List, Report, error)

	current atomic.Pointer[current]

	mu    sync.Mutex // of whoever reads files
	files []file
}

// current is replaced as a whole, so whoever asks never waits for a file.
type current struct {
	list   *List
	status []Status
}

// Status is what became of a file.
type Status struct {
	Path   string
	Report           // of the list in use
	Loaded time.Time // when that was read; zero if none ever was
	Err    error     // why the latest attempt failed, else nil
}

type file struct {
	Status
	list *List
	read fs.FileInfo // of the latest attempt; nil if there was no file
	seen fs.FileInfo // of the latest look
}

// NewFiles returns the lists of c, of which no file has been read yet.
func NewFiles(c Config) *Files {
	f := &Files{always: c.Always, now: c.Now, log: c.Log, parse: Parse}
	for _, path := range c.Paths {
		f.files = append(f.files, file{Status: Status{Path: path}, list: &List{}})
	}
	f.publish()
	return f
}

// Blocks is [List.Blocks] for all the lists.
func (f *Files) Blocks(host string) bool { return f.current.Load().list.Blocks(host) }

// Ready returns the error of the first file that was never loaded, or nil.
func (f *Files) Ready() error {
	for _, status := range f.Status() {
		if status.Loaded.IsZero() {
			return cmp.Or(status.Err, fmt.Errorf("block list %s was not read yet", status.Path))
		}
	}
	return nil
}

// Status returns what became of each file, in the order of [Config]. Callers must
// not change it.
func (f *Files) Status() []Status { return f.current.Load().status }

// Reload reads every file anew. The error names each file that could not be
// loaded; the others are in use.
func (f *Files) Reload(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for i := range f.files {
		errs = append(errs, f.load(ctx, &f.files[i]))
	}
	f.publish()
	return errors.Join(errs...)
}

// Watch reads a file anew when it has changed, and all of them when it is told
// to, until ctx ends. It looks at them once in every interval, and reads one that
// has stayed as it is since the look before: a download may still be writing it.
//
// It polls because notices of the kernel need a dependency, do not come from all
// file systems, and are lost when a file is replaced under its name, as most
// programs do. A look is one stat.
func (f *Files) Watch(ctx context.Context, interval time.Duration, told <-chan os.Signal) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-told:
			err = f.Reload(ctx)
		case <-ticker.C:
			err = f.poll(ctx)
		}
		if err != nil && ctx.Err() == nil {
			f.log.Error("block lists were not loaded; what was last read from them stays in use", "error", err)
		}
	}
}

func (f *Files) poll(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for i := range f.files {
		file := &f.files[i]
		info, _ := os.Stat(file.Path) // nil is a state too; load says why
		changed, settled := !same(info, file.read), same(info, file.seen)
		file.seen = info
		if changed && settled {
			errs = append(errs, f.load(ctx, file))
		}
	}
	f.publish()
	return errors.Join(errs...)
}

// load reads a file, which the caller has locked.
func (f *Files) load(ctx context.Context, file *file) error {
	list, report, err := f.readWhole(ctx, file)
	if err != nil {
		file.Err = fmt.Errorf("block list %s: %w", file.Path, err)
		return file.Err
	}
	file.list = list
	file.Status = Status{Path: file.Path, Report: report, Loaded: f.now()}
	f.log.Info("block list loaded", "path", file.Path, "names", report.Names, "skipped", report.Skipped)
	if report.Bad > 0 {
		f.log.Warn("a block list has entries that were not understood and are left out",
			"path", file.Path, "entries", report.Bad, "first", report.FirstBad)
	}
	return nil
}

// readWhole reads a file that is the same before and after.
func (f *Files) readWhole(ctx context.Context, file *file) (*List, Report, error) {
	for range attempts {
		if err := ctx.Err(); err != nil {
			return nil, Report{}, err
		}
		before, err := os.Stat(file.Path)
		file.read = before
		switch {
		case err != nil:
			return nil, Report{}, err
		case !before.Mode().IsRegular():
			return nil, Report{}, errors.New("is no regular file")
		}
		list, report, err := f.open(file.Path)
		if after, _ := os.Stat(file.Path); same(before, after) {
			return list, report, err
		}
	}
	return nil, Report{}, errors.New("changed each time while it was read")
}

func (f *Files) open(path string) (*List, Report, error) {
	text, err := os.Open(path)
	if err != nil {
		return nil, Report{}, err
	}
	defer text.Close()
	return f.parse(text)
}

// same reports whether nothing was seen to happen to a file. The mode is among
// it, because a file that could not be read may be given the right.
func same(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && a.Mode() == b.Mode()
}

func (f *Files) publish() {
	lists := slices.Clone(f.always)
	var status []Status
	for _, file := range f.files {
		lists = append(lists, file.list)
		status = append(status, file.Status)
	}
	f.current.Store(&current{Union(lists...), status})
}
