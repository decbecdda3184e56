package provider

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"

	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm"
	"github.com/criticizer/criticizer/rewrite"
)

// maxLine bounds a line of a file; real ones are a few kilobytes.
const maxLine = 4 << 20

// Results calls each for every line of an output or error file that can be read
// and names an item, in the file's order, and ends at the first error of each.
// A line that is no JSON, names nothing or is over 4 MiB is left out and logged
// by its number. Neither the file nor its lines are held in memory. The error of
// a file that is gone has class [failure.NotFound].
func (r *Rewriter) Results(ctx context.Context, to rewrite.RoutingDecision, fileID string, each func(rewrite.Line) error) error {
	endpoint, a, err := r.openBatches(to)
	if err != nil {
		return err
	}
	body, err := endpoint.Download(ctx, "/files/"+url.PathEscape(fileID)+"/content")
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	number := 0
	for raw, err := range linesOf(body) {
		if err != nil {
			return err
		}
		number++
		line, ok := a.result(raw)
		if !ok {
			r.lg.WarnContext(ctx, "left out a line of a batch file that cannot be read", "file", fileID, "line", number)
			continue
		}
		if err := each(line); err != nil {
			return err
		}
	}
	return nil
}

// result reads one line, of an output or an error file alike. ok is false if it
// names no item.
func (a adapter) result(raw []byte) (line rewrite.Line, ok bool) {
	var said struct {
		CustomID string `json:"custom_id"`
		Response *struct {
			Status int             `json:"status_code"`
			Body   json.RawMessage `json:"body"`
		} `json:"response"`
		Error *struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(raw, &said) != nil || said.CustomID == "" {
		return line, false
	}
	line.CustomID = said.CustomID
	switch {
	case said.Error != nil:
		line.Err = unanswered(said.Error.Code)
	case said.Response == nil || said.Response.Status == 0:
		line.Err = failure.Errorf(failure.UpstreamInternal, "provider did not carry out a request of the batch")
	case said.Response.Status != http.StatusOK:
		line.Err = refusedItem(said.Response.Status, said.Response.Body)
	default:
		line.Answer, line.Err = a.read(said.Response.Body)
	}
	return line, true
}

// unanswered is the error of an item that the provider did not get to.
func unanswered(code string) error {
	switch code {
	case "batch_expired", "batch_cancelled":
		return failure.Errorf(failure.UpstreamUnavailable, "provider ended the batch before this request (%s)", code)
	case "request_timeout":
		return failure.Errorf(failure.NetworkTimeout, "provider gave up a request of the batch (%s)", code)
	}
	return failure.Errorf(failure.UpstreamInternal, "provider did not carry out a request of the batch")
}

// refusedItem is the error of an item that was answered with an error.
func refusedItem(status int, body []byte) error {
	var said openai.ErrorResponse
	if json.Unmarshal(body, &said) != nil || said.Error == nil {
		return llm.Refused(status, "", "", "")
	}
	code, _ := said.Error.Code.(string)
	return llm.Refused(status, code, said.Error.Type, said.Error.Message)
}

// linesOf returns the lines of a file without their ends, empty ones left out. A
// line over maxLine is nil. What is returned holds until the next one.
func linesOf(file io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		in := bufio.NewReaderSize(file, 64<<10)
		for {
			line, err := readLine(in)
			if err != nil && !errors.Is(err, io.EOF) {
				yield(nil, err)
				return
			}
			if (line == nil || len(line) > 0) && !yield(line, nil) || err != nil {
				return
			}
		}
	}
}

// readLine reads to the end of a line; of one that is too long it keeps nothing.
func readLine(in *bufio.Reader) (line []byte, err error) {
	line = []byte{}
	for {
		part, err := in.ReadSlice('\n')
		if line != nil {
			line = append(line, part...)
		}
		if len(line) > maxLine {
			line = nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return trimEnd(line), err
		}
	}
}

func trimEnd(line []byte) []byte {
	for len(line) > 0 && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
		line = line[:len(line)-1]
	}
	return line
}
