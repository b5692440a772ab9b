package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// normaliser makes answers comparable: what differs from run to run becomes a placeholder that still
// says which values were equal. docs/recorded-cases.md, section 5, is the specification; the C++
// runner implements the same rules, so a change here is a change there.
//
// One per case file; not for concurrent use.
type normaliser struct {
	servers []string // host:port of the server under test, and the address that it advertises
	uids    numbering
	rvs     numbering
	ips     numbering
	gens    int
	// generated names in order of appearance; replaced in this order everywhere.
	generated []generatedName
}

type generatedName struct{ name, placeholder string }

// options are what one step asks of the normaliser.
type options struct {
	path              string // request path without query
	items             []string
	keepManagedFields bool
}

type numbering map[string]int

func (n *numbering) of(s string) int {
	if *n == nil {
		*n = numbering{}
	}
	i, ok := (*n)[s]
	if !ok {
		i = len(*n) + 1
		(*n)[s] = i
	}
	return i
}

var (
	uidPattern        = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	timePattern       = regexp.MustCompile(`20[2-9][0-9]-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z`)
	jwtPattern        = regexp.MustCompile(`^eyJ[A-Za-z0-9_-]*\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)
	agePattern        = regexp.MustCompile(`^([0-9]+(y|d|h|m|s))+$`)
	digitsPattern     = regexp.MustCompile(`^[0-9]+$`)
	suffixPattern     = regexp.MustCompile(`^[bcdfghjklmnpqrstvwxz2456789]{5}$`)
	accessPattern     = regexp.MustCompile(`kube-api-access-[bcdfghjklmnpqrstvwxz2456789]{5}`)
	rvPrecondition    = regexp.MustCompile(`(ResourceVersion in (?:precondition: |object meta: |the precondition \(|record \())([0-9]+)`)
	hashPattern       = regexp.MustCompile(`hash=[0-9A-F]{32,}`)
	patchedPattern    = regexp.MustCompile(`Invalid value: "\{\\"apiVersion.*": `)
	rvCurrent         = regexp.MustCompile(`(Too large resource version: [0-9]+, current: )([0-9]+)`)
	rvProvided        = regexp.MustCompile(`(The provided resource version )([0-9]+)`)
	credentialPattern = regexp.MustCompile(`X509SHA256=[0-9a-f]{64}`)
	ipPattern         = regexp.MustCompile(`^10\.96\.([0-9]{1,3})\.[0-9]{1,3}$`)
)

// maxGeneratePrefix is how much of generateName the server keeps: 63 less five random characters.
const maxGeneratePrefix = 58

var ageColumns = map[string]bool{
	"Age": true, "Last Seen": true, "First Seen": true, "Duration": true, "Last Schedule": true,
}

var versionTexts = map[string]bool{
	"gitCommit": true, "gitTreeState": true, "buildDate": true, "goVersion": true,
	"compiler": true, "platform": true,
}

// normalise changes the body in place and returns it.
func (n *normaliser) normalise(body value, o options) value {
	if len(o.items) > 0 {
		keepItems(body, o.items)
	}
	if strings.HasPrefix(o.path, "/openapi/") {
		dropDescriptions(body)
	}
	dropColumnDescriptions(body)
	if !o.keepManagedFields {
		dropManagedFields(body)
	}
	n.findGenerated(body)
	return n.walk(body, spot{version: o.path == "/version"})
}

// spot is where in the document a value stands.
type spot struct {
	version  bool // the document is /version
	listMeta bool // directly in the metadata of a list, a table or a bookmark
	bookmark bool // the object of a BOOKMARK event
	inJWT    bool
}

func (n *normaliser) walk(v value, s spot) value {
	switch t := v.(type) {
	case *array:
		for i := range t.items {
			t.items[i] = n.walk(t.items[i], spot{version: s.version, inJWT: s.inJWT})
		}
	case *object:
		n.walkObject(t, s)
	case string:
		return n.text(t)
	}
	return v
}

func (n *normaliser) walkObject(o *object, s spot) {
	_, hasItems := o.get("items")
	_, hasRows := o.get("rows")
	isList := hasItems || hasRows || strings.HasSuffix(o.getString("kind"), "List") || s.bookmark
	isBookmark := o.getString("type") == "BOOKMARK"
	n.ages(o)
	for _, at := range o.sorted() {
		m := &o.members[at]
		if taken, v := n.byKey(m.key, m.val, s); taken {
			m.val = v
			continue
		}
		m.val = n.walk(m.val, spot{
			version:  s.version,
			listMeta: isList && m.key == "metadata",
			bookmark: isBookmark && m.key == "object",
			inJWT:    s.inJWT,
		})
	}
	for i := range o.members {
		if o.members[i].key == "managedFields" {
			sortByText(o.members[i].val)
		}
		o.members[i].key = n.uidText(o.members[i].key)
	}
}

// sortByText gives a list an order that does not depend on the clock: the server orders managedFields
// by time, in whole seconds, before anything else.
func sortByText(v value) {
	if list, ok := v.(*array); ok {
		slices.SortStableFunc(list.items, func(a, b value) int {
			return strings.Compare(compact(a, true), compact(b, true))
		})
	}
}

// byKey applies the rules that look at a value's key (1 to 5 of the specification).
func (n *normaliser) byKey(key string, v value, s spot) (bool, value) {
	switch t := v.(type) {
	case string:
		switch {
		case key == "resourceVersion" && t != "0" && digitsPattern.MatchString(t):
			if s.listMeta {
				return true, "<rv>"
			}
			return true, n.rv(t)
		case key == "continue" && t != "":
			return true, "<continue>"
		case key == "serverAddress":
			return true, "<server>"
		case s.version && key == "gitVersion":
			before, _, _ := strings.Cut(t, "+")
			return true, before
		case s.version && versionTexts[key]:
			return true, "<text>"
		case s.inJWT && key == "kid":
			return true, "<kid>"
		case jwtPattern.MatchString(t):
			return n.jwt(t)
		}
	case json.Number:
		switch {
		case key == "nodePort" || key == "healthCheckNodePort":
			if p, err := strconv.Atoi(t.String()); err == nil && p >= 30086 {
				return true, "<port>"
			}
		case s.inJWT && (key == "exp" || key == "iat" || key == "nbf" || key == "warnafter"):
			return true, "<time>"
		}
	}
	return false, nil
}

func (n *normaliser) rv(s string) string { return fmt.Sprintf("<rv-%d>", n.rvs.of(s)) }

func (n *normaliser) jwt(token string) (bool, value) {
	parts := strings.Split(token, ".")
	var decoded [2]value
	for i := range decoded {
		raw, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil {
			return false, nil
		}
		if decoded[i], err = parseJSON(raw); err != nil {
			return false, nil
		}
		decoded[i] = n.walk(decoded[i], spot{inJWT: true})
	}
	return true, &object{[]member{{"header", decoded[0]}, {"claims", decoded[1]}}}
}

// ages replaces the cells of a Table's columns that hold a span of time until now (rule 6).
func (n *normaliser) ages(o *object) {
	if o.getString("kind") != "Table" {
		return
	}
	columns, _ := o.get("columnDefinitions")
	rows, _ := o.get("rows")
	columnList, ok1 := columns.(*array)
	rowList, ok2 := rows.(*array)
	if !ok1 || !ok2 {
		return
	}
	for i, c := range columnList.items {
		column, ok := c.(*object)
		if !ok || !ageColumns[column.getString("name")] {
			continue
		}
		for _, r := range rowList.items {
			row, _ := r.(*object)
			if row == nil {
				continue
			}
			cells, _ := row.get("cells")
			list, ok := cells.(*array)
			if !ok || i >= len(list.items) {
				continue
			}
			if s, ok := list.items[i].(string); ok && agePattern.MatchString(s) {
				list.items[i] = "<age>"
			}
		}
	}
}

func (n *normaliser) uidText(s string) string {
	return uidPattern.ReplaceAllStringFunc(s, func(uid string) string {
		return fmt.Sprintf("<uid-%d>", n.uids.of(uid))
	})
}

// text applies the rules for strings (7 to 15).
func (n *normaliser) text(s string) string {
	s = n.uidText(s)
	for _, g := range n.generated {
		s = strings.ReplaceAll(s, g.name, g.placeholder)
	}
	s = timePattern.ReplaceAllStringFunc(s, func(t string) string {
		if t[:4] < "2025" {
			return t
		}
		_, fraction, ok := strings.Cut(t, ".")
		if !ok {
			return "<time>"
		}
		return fmt.Sprintf("<time.%d>", len(fraction)-1)
	})
	s = rvPrecondition.ReplaceAllStringFunc(s, func(m string) string {
		sub := rvPrecondition.FindStringSubmatch(m)
		if sub[2] == "0" {
			return m
		}
		return sub[1] + n.rv(sub[2])
	})
	s = hashPattern.ReplaceAllString(s, "hash=<hash>")
	s = patchedPattern.ReplaceAllString(s, `Invalid value: "<patched>": `)
	s = rvCurrent.ReplaceAllString(s, "${1}<rv>")
	s = rvProvided.ReplaceAllString(s, "${1}<rv>")
	if m := ipPattern.FindStringSubmatch(s); m != nil && m[1] != "0" {
		s = fmt.Sprintf("<ip-%d>", n.ips.of(s))
	}
	s = credentialPattern.ReplaceAllString(s, "X509SHA256=<hash>")
	for _, server := range n.servers {
		s = strings.ReplaceAll(s, server, "<server>")
	}
	return s
}

// findGenerated notes the generated names of a body, in walking order (rule 8).
func (n *normaliser) findGenerated(v value) {
	switch t := v.(type) {
	case *array:
		for _, item := range t.items {
			n.findGenerated(item)
		}
	case *object:
		if meta := t.getObject("metadata"); meta != nil {
			prefix, name := meta.getString("generateName"), meta.getString("name")
			prefix = prefix[:min(len(prefix), maxGeneratePrefix)]
			if prefix != "" && strings.HasPrefix(name, prefix) &&
				suffixPattern.MatchString(name[len(prefix):]) {
				n.addGenerated(name, prefix)
			}
		}
		for _, at := range t.sorted() {
			n.findGenerated(t.members[at].val)
		}
	case string:
		for _, name := range accessPattern.FindAllString(t, -1) {
			n.addGenerated(name, "kube-api-access-")
		}
	}
}

func (n *normaliser) addGenerated(name, prefix string) {
	for _, g := range n.generated {
		if g.name == name {
			return
		}
	}
	n.gens++
	n.generated = append(n.generated, generatedName{name, fmt.Sprintf("%s<gen-%d>", prefix, n.gens)})
}

// keepItems leaves of the body's list only the entries with one of these names (@items).
func keepItems(body value, names []string) {
	o, ok := body.(*object)
	if !ok {
		return
	}
	for _, key := range []string{"items", "resources", "groups", "rows"} {
		v, _ := o.get(key)
		list, ok := v.(*array)
		if !ok {
			continue
		}
		var kept []value
		for _, item := range list.items {
			if matchesAny(itemName(item), names) {
				kept = append(kept, item)
			}
		}
		list.items = kept
	}
}

func itemName(item value) string {
	o, ok := item.(*object)
	if !ok {
		return ""
	}
	if row := o.getObject("object"); row != nil {
		o = row
	}
	if meta := o.getObject("metadata"); meta != nil {
		return meta.getString("name")
	}
	return o.getString("name")
}

func matchesAny(name string, patterns []string) bool {
	for _, p := range patterns {
		if prefix, ok := strings.CutSuffix(p, "*"); ok && strings.HasPrefix(name, prefix) || p == name {
			return true
		}
	}
	return false
}

func dropDescriptions(v value) {
	switch t := v.(type) {
	case *array:
		for _, item := range t.items {
			dropDescriptions(item)
		}
	case *object:
		t.remove(func(m member) bool {
			_, text := m.val.(string)
			return m.key == "description" && text
		})
		for _, m := range t.members {
			dropDescriptions(m.val)
		}
	}
}

// dropColumnDescriptions: what a Table says of its columns is prose, which is not compared.
func dropColumnDescriptions(v value) {
	switch t := v.(type) {
	case *array:
		for _, item := range t.items {
			dropColumnDescriptions(item)
		}
	case *object:
		for _, m := range t.members {
			if m.key == "columnDefinitions" {
				dropDescriptions(m.val)
			} else {
				dropColumnDescriptions(m.val)
			}
		}
	}
}

func dropManagedFields(v value) {
	switch t := v.(type) {
	case *array:
		for _, item := range t.items {
			dropManagedFields(item)
		}
	case *object:
		if meta := t.getObject("metadata"); meta != nil {
			meta.remove(func(m member) bool { return m.key == "managedFields" })
		}
		for _, m := range t.members {
			dropManagedFields(m.val)
		}
	}
}

func pathOf(target string) string {
	p, _, _ := strings.Cut(target, "?")
	return path.Clean(p)
}
