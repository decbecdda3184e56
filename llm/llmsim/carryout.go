package llmsim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// An order is one line of an input file.
type order struct {
	CustomID string          `json:"custom_id"`
	Method   string          `json:"method"`
	URL      string          `json:"url"`
	Body     json.RawMessage `json:"body"`
}

// ends are the statuses in which fates end, where it is not completed.
var ends = map[FaultKind]string{Expire: "expired", CancelHalfway: "cancelled"}

// carryOut has the model answer the lines of b and stores its files. The lines
// of the output are in the reverse order of the input. The depot is locked.
func (s *Server) carryOut(b *batch) {
	orders, problem := b.orders(s.depot.files[b.input])
	b.tokens = 0
	if problem != nil {
		b.status, b.problems = "failed", []map[string]any{problem}
		return
	}
	b.status, b.total = "completed", len(orders)
	left := 0 // how many are not carried out
	if end, ok := ends[b.fate]; ok {
		b.status, left = end, (len(orders)+1)/2
	}
	var output, errors bytes.Buffer
	for i, o := range slices.Backward(orders) {
		if i < left {
			writeLine(&errors, o.CustomID, nil, map[string]any{"code": "batch_" + b.status, "message": "This request could not be executed."})
			b.failed++
			continue
		}
		s.carryOutLine(b, i, o, &output, &errors)
	}
	if b.fate != NoFiles {
		b.output, b.errors = s.depot.storeLines(b, "output", output), s.depot.storeLines(b, "errors", errors)
	}
}

// storeLines keeps lines as a file, if there are any.
func (d *depot) storeLines(b *batch, name string, lines bytes.Buffer) *upload {
	if lines.Len() == 0 {
		return nil
	}
	return d.store(b.id+"_"+name+".jsonl", "batch_output", lines.Bytes())
}

// carryOutLine answers one line, and spoils it as the fate of b says.
func (s *Server) carryOutLine(b *batch, i int, o order, output, errors *bytes.Buffer) {
	out := s.answerLine(b, i, o)
	to := output
	if out.status != http.StatusOK {
		to = errors
		b.failed++
	} else {
		b.done++
	}
	response := map[string]any{"status_code": out.status, "request_id": "req_" + o.CustomID, "body": json.RawMessage(out.body)}
	if !json.Valid(out.body) {
		response["body"] = string(out.body)
	}
	if b.fate == MissingLines && i%3 == 0 {
		return
	}
	writeLine(to, o.CustomID, response, nil)
	switch b.fate {
	case DoubledLines:
		writeLine(to, o.CustomID, response, nil)
	case BrokenLines:
		to.WriteString("{\"custom_id\":\"" + o.CustomID + "\n\n[]\n{\"response\":null}\n")
	}
}

// answerLine is the model's answer to one line.
func (s *Server) answerLine(b *batch, i int, o order) reply {
	d := dialects[b.endpoint]
	q, ok := d.read(o.Body)
	if !ok {
		return apiErrors[BadRequest].reply()
	}
	q.customID = o.CustomID
	fault := s.nextFault(Model, q)
	if b.fate == NotCarriedOut {
		return reply{body: []byte("null")}
	}
	if out := s.faultReply(fault.Kind); out.reached() {
		return out
	}
	return s.think(*d, fmt.Sprintf("%s_%d", b.id, i), q, fault)
}

func writeLine(to *bytes.Buffer, customID string, response, err map[string]any) {
	line, _ := json.Marshal(map[string]any{"id": "batch_req_" + customID, "custom_id": customID, "response": response, "error": err})
	to.Write(append(line, '\n'))
}

// orders reads the input, as the API validates it: after the batch was created.
func (b *batch) orders(input *upload) ([]order, map[string]any) {
	problem := func(code string, line int) map[string]any {
		p := map[string]any{"code": code, "message": "The batch was refused.", "param": nil, "line": nil}
		if line > 0 {
			p["line"] = line
		}
		return p
	}
	switch {
	case b.fate == OutOfRoom:
		return nil, problem("token_limit_exceeded", 0)
	case b.fate == BadFile:
		return nil, problem("invalid_json_line", 1)
	case input == nil || len(input.content) == 0:
		return nil, problem("empty_file", 0)
	case len(input.content) > maxBatchBytes:
		return nil, problem("file_too_large", 0)
	}
	var orders []order
	var model string
	seen := map[string]bool{}
	for raw := range bytes.Lines(input.content) {
		n := len(orders) + 1
		var o order
		if json.Unmarshal(raw, &o) != nil {
			return nil, problem("invalid_json_line", n)
		}
		q, _ := dialects[b.endpoint].read(o.Body)
		if n == 1 {
			model = q.model
		}
		switch {
		case seen[o.CustomID]:
			return nil, problem("duplicate_custom_id", n)
		case o.URL != b.endpoint || o.Method != http.MethodPost:
			return nil, problem("url_mismatch", n)
		case q.model != model:
			return nil, problem("model_mismatch", n)
		case n > maxBatchLines:
			return nil, problem("too_many_tasks", 0)
		}
		seen[o.CustomID] = true
		orders = append(orders, o)
	}
	return orders, nil
}
