package endpoint

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// FuzzAnswer reads any bytes as an answer: what comes out are lines of a regular stream, and an
// error quotes nothing.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":-1}}`))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}}]}\n\ndata: [DONE]\n"))
	f.Add([]byte("event: error\ndata: " + leak + "\n\nerror: {}\n: c\n"))
	f.Add([]byte(`{"error":{"message":"x"}}`))
	f.Add([]byte(strings.Repeat(`{"choices":[`, 1000)))
	f.Fuzz(func(t *testing.T, body []byte) {
		in := bufio.NewReader(&events{call: &call{}, in: bufio.NewReader(bytes.NewReader(body))})
		var a Answer
		for {
			line, err := in.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				return
			}
			data, regular := bytes.CutPrefix(line, []byte("data: "))
			if err != nil || !regular {
				t.Fatalf("line %q, error %v", line, err)
			}
			if err := a.add(bytes.TrimSpace(data), http.Header{}); err != nil {
				if strings.Contains(err.Error(), leak) {
					t.Fatal(err)
				}
				return
			}
		}
	})
}
