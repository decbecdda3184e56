package p4

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A content is one printed revision, or the reason why it is missing.
type content struct {
	data     []byte
	action   review.Action
	fileType fileType
	size     int64 // as the server reported it; -1 if it did not
	complete bool  // the last chunk arrived, or another revision followed
	missing  review.SkipReason
}

// A printout collects the output of one print of many revisions.
type printout struct {
	maxBytes int64 // of one content
	fold     func(string) string
	shelf    review.Changelist   // whose files are printed; 0 for submitted revisions
	contents map[string]*content // by folded spec
	current  *content            // whose chunks arrive; nil for none
	// unnamed is the reason of a missing revision that the message did not name.
	unnamed review.SkipReason
}

// of returns the content of a requested revision.
func (p *printout) of(spec string) *content { return p.contents[p.fold(spec)] }

// print reads the given revisions with one process: submitted ones, or, if shelf
// is not 0, files shelved there. A content of more than maxBytes is dropped as it
// arrives, and not shortened.
func (s *server) print(ctx context.Context, specs []string, shelf review.Changelist, maxBytes int64) (*printout, error) {
	p := &printout{maxBytes: maxBytes, fold: s.fold, shelf: shelf, contents: make(map[string]*content, len(specs))}
	var lines []string
	for _, spec := range specs {
		if p.of(spec) == nil { // two files may have one source
			p.contents[s.fold(spec)] = &content{size: -1}
			lines = append(lines, spec)
		}
	}
	if lines == nil {
		return p, nil
	}
	err := s.run(ctx, command{name: "print", lines: lines}, p.add)
	switch {
	case errors.Is(err, errOutputLimit):
		p.unnamed = review.SkipTooLarge
	case err != nil:
		return nil, err
	default:
		p.endCurrent()
	}
	return p, p.explainMissing()
}

// add adds one record.
func (p *printout) add(rec record) error {
	switch {
	case rec.code == "error":
		return p.addMessage(rec)
	case rec.code == "stat":
		p.endCurrent()
		p.current = p.of(p.specOf(rec))
		if c := p.current; c != nil {
			c.action, c.fileType = review.Action(rec.fields["action"]), parseType(rec.fields["type"])
			if size, err := strconv.ParseInt(rec.fields["fileSize"], 10, 64); err == nil {
				c.size = size
			}
		}
	case rec.isContent() && p.current != nil:
		p.current.add(rec.fields["data"], p.maxBytes)
	}
	return nil
}

// specOf is the spec of the revision whose chunks follow the record.
func (p *printout) specOf(rec record) string {
	if p.shelf > 0 {
		return rec.fields["depotFile"] + "@=" + p.shelf.String()
	}
	return rec.fields["depotFile"] + "#" + rec.fields["rev"]
}

// add adds a chunk; an empty one ends the content.
func (c *content) add(chunk string, maxBytes int64) {
	switch {
	case chunk == "":
		c.complete = true
	case int64(len(c.data)+len(chunk)) > maxBytes:
		c.missing, c.data = review.SkipTooLarge, nil
	case c.missing == "":
		c.data = append(c.data, chunk...)
	}
}

func (p *printout) endCurrent() {
	if p.current != nil {
		p.current.complete = true
	}
	p.current = nil
}

// addMessage records why one revision is missing, and returns any other failure.
// The message may name the revision, or interrupt its content; otherwise it is
// about a revision that does not arrive.
func (p *printout) addMessage(rec record) error {
	rule := rec.rule()
	if rule.skip == "" {
		return rec.err()
	}
	name, _, _ := strings.Cut(rec.fields["data"], " - ")
	if c := p.of(name); c != nil {
		c.missing = rule.skip
	} else if c := p.current; c != nil && !c.complete && int64(len(c.data)) != c.size {
		c.missing = rule.skip
	} else {
		p.unnamed = rule.skip
	}
	return nil
}

// explainMissing sets the reason of every revision that did not arrive. Without a
// reason, a missing revision is a failure of the command, also if its exit status
// is 0.
func (p *printout) explainMissing() error {
	for _, c := range p.contents {
		if c.complete || c.missing != "" {
			continue
		}
		if p.unnamed == "" {
			return failure.Errorf(failure.UpstreamInternal, "p4 print left out a revision without a message")
		}
		c.missing, c.data = p.unnamed, nil
	}
	return nil
}
