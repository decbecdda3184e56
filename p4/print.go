package p4

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A content is one printed revision, or the reason why it could not be had.
type content struct {
	data     []byte
	action   review.Action
	fileType fileType
	size     int64 // as the server announced it; -1 if it did not
	complete bool  // its last chunk came, or another revision followed
	missing  review.SkipReason
}

// A printout collects the output of one print of many revisions.
type printout struct {
	max      int64
	fold     func(string) string
	shelf    review.Changelist   // whose files are printed; 0 for submitted revisions
	contents map[string]*content // by folded spec
	current  *content            // whose chunks are coming; nil for none
	// unnamed is why a revision is missing whose name the message did not say.
	unnamed review.SkipReason
}

// of returns the content of a revision that was asked for.
func (p *printout) of(spec string) *content { return p.contents[p.fold(spec)] }

// print reads the given revisions with one process: submitted ones, or, if shelf
// is not 0, files shelved there. Content of more than max bytes is dropped as it
// comes, never shortened.
func (s *server) print(ctx context.Context, specs []string, shelf review.Changelist, max int64) (*printout, error) {
	p := &printout{max: max, fold: s.fold, shelf: shelf, contents: make(map[string]*content, len(specs))}
	var lines []string
	for _, spec := range specs {
		if p.of(spec) == nil { // two files can have been branched from one
			p.contents[s.fold(spec)] = &content{size: -1}
			lines = append(lines, spec)
		}
	}
	if lines == nil {
		return p, nil
	}
	err := s.run(ctx, command{name: "print", lines: lines}, p.take)
	switch {
	case errors.Is(err, errOutputLimit):
		p.unnamed = review.SkipTooLarge
	case err != nil:
		return nil, err
	default:
		p.end()
	}
	return p, p.settle()
}

// take sorts one record in.
func (p *printout) take(rec record) error {
	switch {
	case rec.code == "error":
		return p.takeMessage(rec)
	case rec.code == "stat":
		p.end()
		p.current = p.of(p.announced(rec))
		if c := p.current; c != nil {
			c.action, c.fileType = review.Action(rec.fields["action"]), parseType(rec.fields["type"])
			if size, err := strconv.ParseInt(rec.fields["fileSize"], 10, 64); err == nil {
				c.size = size
			}
		}
	case rec.isContent() && p.current != nil:
		p.current.add(rec.fields["data"], p.max)
	}
	return nil
}

// announced is the spec of the revision that a record announces.
func (p *printout) announced(rec record) string {
	if p.shelf > 0 {
		return rec.fields["depotFile"] + "@=" + p.shelf.String()
	}
	return rec.fields["depotFile"] + "#" + rec.fields["rev"]
}

// add takes a chunk; an empty one ends the content.
func (c *content) add(chunk string, max int64) {
	switch {
	case chunk == "":
		c.complete = true
	case int64(len(c.data)+len(chunk)) > max:
		c.missing, c.data = review.SkipTooLarge, nil
	case c.missing == "":
		c.data = append(c.data, chunk...)
	}
}

// end closes the content whose chunks were coming.
func (p *printout) end() {
	if p.current != nil {
		p.current.complete = true
	}
	p.current = nil
}

// takeMessage notes why one revision is missing, and returns any other failure.
// Some messages name the revision, some come in the midst of it, and some do
// neither: those are about one that is going to be missing.
func (p *printout) takeMessage(rec record) error {
	message := rec.fields["data"]
	m, ok := meaningOf(message)
	if !ok || m.skip == "" {
		return rec.err()
	}
	name, _, _ := strings.Cut(message, " - "+m.text)
	if c := p.of(name); c != nil {
		c.missing = m.skip
	} else if c := p.current; c != nil && !c.complete && int64(len(c.data)) != c.size {
		c.missing = m.skip
	} else {
		p.unnamed = m.skip
	}
	return nil
}

// settle gives every revision that did not come its reason. One that is missing
// without any is a failure of the command, whatever its exit status was.
func (p *printout) settle() error {
	for _, c := range p.contents {
		if c.complete || c.missing != "" {
			continue
		}
		if p.unnamed == "" {
			return failure.Errorf(failure.UpstreamInternal, "p4 print left out a revision without saying why")
		}
		c.missing, c.data = p.unnamed, nil
	}
	return nil
}
