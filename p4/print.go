package p4

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/p4/internal/command"
	"github.com/criticizer/criticizer/review"
)

// A content is one printed revision, or the reason why it is missing.
type content struct {
	spec     string // as it was requested
	data     []byte
	action   review.Action
	fileType fileType
	size     int64 // as the server reported it; -1 if it did not
	complete bool  // the last chunk arrived, or another revision followed
	missing  review.SkipReason
}

// A printout collects the output of prints of many revisions.
type printout struct {
	*server
	maxBytes int64             // of one content
	shelf    review.Changelist // whose files are printed; 0 for submitted revisions
	// isLast is set if no further attempt will be made, in which a replica may have the
	// content that it lacks.
	isLast   bool
	contents map[string]*content // by folded spec
	attempt
}

// An attempt is what one process has printed.
type attempt struct {
	current *content // whose chunks arrive; nil for none
	// unnamed is the reason of a missing revision that the message did not name, and
	// damaged counts such messages about damage.
	unnamed review.SkipReason
	damaged int
	arrived int // contents
	odd     error
}

// newPrintout returns an empty printout of the given revisions, and lists each once: two
// files may have one source.
func (x *fetch) newPrintout(specs []string, shelf review.Changelist) (p *printout, unique []string) {
	p = &printout{
		server: x.server, maxBytes: x.cfg.MaxFileBytes, shelf: shelf, isLast: x.how.LastAttempt,
		contents: make(map[string]*content, len(specs)),
	}
	for _, spec := range specs {
		if p.of(spec) == nil {
			p.contents[p.fold(spec)] = &content{spec: spec, size: -1}
			unique = append(unique, spec)
		}
	}
	return p, unique
}

// of returns the content of a requested revision.
func (p *printout) of(spec string) *content { return p.contents[p.fold(spec)] }

// printAll reads revisions. Shelved ones need a print of their own: p4 reports a
// shelved file under the number of the revision it is based on.
func (x *fetch) printAll(ctx context.Context, specs []string) (*printout, error) {
	var shelved, submitted []string
	for _, spec := range specs {
		if strings.Contains(spec, "@=") {
			shelved = append(shelved, spec)
		} else {
			submitted = append(submitted, spec)
		}
	}
	printed, err := x.print(ctx, submitted, 0)
	if err != nil {
		return nil, err
	}
	shelf, err := x.print(ctx, shelved, x.Number)
	if err != nil {
		return nil, err
	}
	maps.Copy(printed.contents, shelf.contents)
	return printed, nil
}

// maxPrints limits the processes of one print: a server may end a print at each
// damaged revision. maxLimited limits those that end at a limit, and maxHalvings those that a
// limit of the account refuses: p4 passes batches of 128 revisions to the server.
const (
	maxPrints   = 100
	maxLimited  = 4
	maxHalvings = 7
	batch       = 128
)

// print reads the given revisions: submitted ones, or, if shelf is not 0, files
// shelved there. A content of more than maxBytes is dropped as it arrives, and not
// shortened. The server answers in the order of the request. If it ends at a damaged
// revision, or at one that is over the limit of output or over a limit of the account,
// those that did not arrive are requested again without it. If a limit of the account refuses
// a request before any content arrives, its half is requested. Without a message, a missing
// revision is a failure of the command, even if its exit status is 0.
func (x *fetch) print(ctx context.Context, specs []string, shelf review.Changelist) (*printout, error) {
	p, left := x.newPrintout(specs, shelf)
	limited, stuck, halvings, size := 0, 0, 0, len(left)
	for n := 0; len(left) > 0 && n < maxPrints; n++ {
		requested, rest := left[:min(size, len(left))], left[min(size, len(left)):]
		p.attempt = attempt{}
		err := x.Run(ctx, command.Cmd{Name: "print", Lines: requested}, p.add)
		switch {
		case err == nil:
			p.endCurrent()
		case failure.ClassOf(err) != failure.TooLarge:
			return nil, err
		case !errors.Is(err, command.ErrOutputLimit) && p.arrived == 0 && p.current == nil &&
			len(requested) > 1 && halvings < maxHalvings:
			size = (min(len(requested), batch) + 1) / 2
			halvings++
			continue
		}
		wasDamaged := p.damaged > 0
		for _, spec := range requested {
			why := p.of(spec).missing
			wasDamaged = wasDamaged || why == review.SkipDamaged || why == review.SkipUnreadable
		}
		requested = slices.DeleteFunc(slices.Clone(requested), func(spec string) bool { return p.of(spec).complete || p.of(spec).missing != "" })
		if len(requested) == 0 {
			left = rest
			continue
		}
		why, skipped := p.unnamed, 0 // of the first revisions that are left
		switch {
		case err != nil:
			if why = review.SkipOverLimit; errors.Is(err, command.ErrOutputLimit) {
				why = review.SkipTooLarge
			}
			if skipped = 1; limited == maxLimited {
				requested, rest = slices.Concat(requested, rest), nil
				skipped = len(requested)
			}
			limited++
			if size == 1 { // the revision was over the limit, not their number
				size = len(left)
			}
		case why != "" && (p.damaged == 0 || p.damaged >= len(requested)):
			skipped = len(requested)
		case why != "":
			skipped = 1
		case !wasDamaged && n == halvings:
			return nil, failure.Errorf(failure.UpstreamInternal, "p4 print left out a revision without a message")
		case !wasDamaged: // the others cannot be read because of a damaged revision
			why, skipped = review.SkipUnreadable, len(requested)
		}
		for _, spec := range requested[:skipped] {
			p.of(spec).missing, p.of(spec).data = why, nil
		}
		left = slices.Concat(requested[skipped:], rest)
		if p.odd != nil && p.arrived == 0 {
			stuck++
		}
		if stuck > 1 && len(left) > 0 {
			return nil, p.odd // the server refuses the command, not a file
		}
	}
	for _, spec := range left {
		p.of(spec).missing = review.SkipUnreadable
	}
	return p, nil
}

func (p *printout) add(rec command.Record) error {
	switch {
	case rec.Code == "error":
		return p.addMessage(rec)
	case rec.Code == "stat":
		p.endCurrent()
		spec := rec.Fields["depotFile"] + "#" + rec.Fields["rev"]
		if p.shelf > 0 {
			spec = rec.Fields["depotFile"] + "@=" + p.shelf.String()
		}
		p.current = p.of(spec)
		if c := p.current; c != nil {
			c.action, c.fileType, c.data, c.size = review.Action(rec.Fields["action"]), parseType(rec.Fields["type"]), nil, -1
			if size, err := strconv.ParseInt(rec.Fields["fileSize"], 10, 64); err == nil {
				c.size = size
			}
		}
	case rec.IsContent() && p.current != nil:
		p.current.add(rec.Fields["data"], p.maxBytes)
	}
	return nil
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
		p.arrived++
	}
	p.current = nil
}

// addMessage records why one revision is missing, and returns any other failure.
// The message may name the revision, or interrupt its content; otherwise it is
// about a revision that does not arrive.
func (p *printout) addMessage(rec command.Record) error {
	m := rec.Message()
	lags, isDamaged := m.Class == failure.ReplicaBehind, m.Skip == review.SkipDamaged
	if m.Skip == "" && rec.Severity() >= 3 && !p.Broker && isOdd(m.Class, p.isLast) {
		m.Skip, isDamaged, p.odd = review.SkipUnreadable, true, rec.Err()
	}
	switch {
	case m.Skip == "", lags && !p.isLast:
		return rec.Err()
	case m.Skip == review.SkipDamaged && !p.isLast && p.info.isReplica():
		return failure.Errorf(failure.ReplicaBehind, "the replica cannot read the archive of a file: it lags, or p4 verify has to be run on the file")
	}
	if c := p.namedIn(rec.Fields["data"]); c != nil {
		c.missing = m.Skip
	} else if c := p.current; c != nil && !c.complete && int64(len(c.data)) != c.size {
		c.missing, c.data, p.current = m.Skip, nil, nil
	} else {
		p.unnamed = m.Skip
		if lags || isDamaged {
			p.damaged++
		}
	}
	return nil
}

// namedIn returns the content of the revision that a message begins with, nil if there is none.
// A name may have the dash that ends it.
func (p *printout) namedIn(message string) *content {
	for i := range message {
		if strings.HasPrefix(message[i:], " - ") && p.of(message[:i]) != nil {
			return p.of(message[:i])
		}
	}
	return nil
}

// isOdd reports whether a message of the class counts as one about the revision that was
// asked for, because it is not about the endpoint.
func isOdd(class failure.Class, isLast bool) bool {
	switch class {
	case failure.Unknown, failure.NotFound, failure.InputInvalid, failure.InvariantViolated:
		return true
	}
	return class == failure.UpstreamInternal && isLast
}
