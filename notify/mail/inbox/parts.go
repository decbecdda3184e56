package inbox

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/emersion/go-message"
)

// contents is a message opened.
type contents struct {
	Headers []headerField `json:"headers"`
	Text    string        `json:"text"`
	HTML    string        `json:"html"`
}

type headerField struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// openMessage takes the first text and the first HTML part of a message, as
// far as it can be read; what cannot be read is said in Text.
func openMessage(raw []byte) contents {
	m, err := message.Read(bytes.NewReader(raw))
	if m == nil {
		return contents{Text: fmt.Sprintf("(the message cannot be read: %v)", err)}
	}
	var c contents
	for f := m.Header.Fields(); f.Next(); {
		value, err := f.Text()
		if err != nil {
			value = f.Value()
		}
		c.Headers = append(c.Headers, headerField{f.Key(), value})
	}
	err = m.Walk(func(_ []int, part *message.Entity, err error) error {
		if err != nil && !message.IsUnknownCharset(err) && !message.IsUnknownEncoding(err) {
			return err
		}
		return c.add(part)
	})
	if err != nil {
		c.Text = strings.TrimSpace(c.Text + fmt.Sprintf("\n\n(the rest of the message cannot be read: %v)", err))
	}
	return c
}

// add takes in a leaf if it is the first of its kind.
func (c *contents) add(part *message.Entity) error {
	kind, _, _ := part.Header.ContentType()
	var into *string
	switch kind {
	case "text/plain":
		into = &c.Text
	case "text/html":
		into = &c.HTML
	}
	if into == nil || *into != "" {
		return nil
	}
	b, err := io.ReadAll(part.Body)
	*into = strings.ToValidUTF8(string(b), "\uFFFD")
	return err
}
