package review

// A Draft is what a model said about a change: checked against the schema,
// anchored, sifted, not yet redacted as a whole.
type Draft struct {
	Findings  []Finding
	Omissions []Omission
	// FilesRead is the number of files the model saw whole.
	FilesRead    int
	Model        string
	PromptDigest string
	Usage        Usage
	// Anchors counts the remarks that had a place, those dropped later included.
	Anchors  map[Anchor]int
	Dropped  map[DropReason]int
	Check    *Check
	Switches []Switch
}

// A DropReason says why a remark of the model became no finding. It is shown to
// people and is wire format.
type DropReason string

// The reasons, in the order in which they are looked for.
const (
	DropUnknownPath DropReason = "about a file the model was not shown"
	DropMarker      DropReason = "about a mark of ours, not about code"
	DropOutside     DropReason = "about code the change does not touch"
	DropNoChange    DropReason = "suggests the code as it is"
	DropNitpick     DropReason = "nitpick"
	DropMinor       DropReason = "below the least severity"
	DropWrong       DropReason = "marked wrong by a reader before"
	DropDuplicate   DropReason = "repeats another finding"
	DropRefuted     DropReason = "refuted by the verification pass"
	DropOverLimit   DropReason = "over the limit of findings in one mail"
)

// DropReasons lists all reasons.
func DropReasons() []DropReason {
	return []DropReason{
		DropUnknownPath, DropMarker, DropOutside, DropNoChange, DropNitpick, DropMinor,
		DropWrong, DropDuplicate, DropRefuted, DropOverLimit,
	}
}

// A Check counts the results of the verification pass, which tries to refute
// findings.
type Check struct {
	Looked  int `json:"looked_at"`
	Removed int `json:"removed,omitempty"`
	Lowered int `json:"lowered,omitempty"`
	// Rejected counts the objections without evidence that could be verified;
	// they changed nothing.
	Rejected int `json:"rejected,omitempty"`
	// Failed counts the findings that are as they were because the look at them
	// failed, and Why is the error class of the last
	// failure.
	Failed int    `json:"failed,omitempty"`
	Why    string `json:"why,omitempty"`
}

// A Switch tells that a model could not answer, by the error class in Why, and
// another was asked instead.
type Switch struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Why   string `json:"why"`
	Calls int    `json:"calls"`
}

// A Cost is what the tokens of a review cost by the configured prices.
type Cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

// Prices are those of a million tokens; zero where none is configured.
type Prices struct {
	Prompt, Completion, Cached float64
	Currency                   string
}

// Of returns what u cost, nil where it cannot be told exactly: a price is
// missing, or the endpoint did not say what was used.
func (p Prices) Of(u Usage) *Cost {
	fresh := u.PromptTokens - u.CachedTokens
	if p.Prompt == 0 || p.Completion == 0 || u.CachedTokens > 0 && p.Cached == 0 || u.Estimated || fresh < 0 {
		return nil
	}
	perMillion := float64(fresh)*p.Prompt + float64(u.CachedTokens)*p.Cached + float64(u.CompletionTokens)*p.Completion
	return &Cost{Amount: perMillion / 1e6, Currency: p.Currency}
}

// A Record is what is kept of how a review was made, without any of its content.
type Record struct {
	Model        string             `json:"model"`
	PromptDigest string             `json:"prompt_digest"`
	Usage        Usage              `json:"usage"` // of all attempts
	Anchors      map[Anchor]int     `json:"anchors"`
	Dropped      map[DropReason]int `json:"dropped"`
	Check        *Check             `json:"check,omitempty"`
	Switches     []Switch           `json:"switches,omitempty"`
	Cost         *Cost              `json:"cost,omitempty"`
}
