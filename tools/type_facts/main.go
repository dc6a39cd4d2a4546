// type_facts writes what podscaler.api.schema.schema knows about the Kubernetes API types, one JSON file for each Go package.
//
// Run it by hand when the Kubernetes version changes (needs Go and its module proxy):
//
//	cd tools/type_facts && go run . ../../src/podscaler/api/schema/data/types
//
// Only facts are taken: names, numbers, types and the machine-readable markers (+optional, +listType, ...); no prose.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strconv"
	"strings"
)

// Field is one JSON field of a message, in the order of the Go struct.
type Field struct {
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	Number      int      `json:"number,omitempty"`
	Repeated    bool     `json:"repeated,omitempty"`
	Map         bool     `json:"map,omitempty"`
	Inline      bool     `json:"inline,omitempty"`
	Pointer     bool     `json:"pointer,omitempty"`
	OmitEmpty   bool     `json:"omitempty,omitempty"`
	OmitZero    bool     `json:"omitzero,omitempty"`
	GoType      string   `json:"goType,omitempty"`
	Required    bool     `json:"required,omitempty"`
	Default     any      `json:"default,omitempty"`
	ListType    string   `json:"listType,omitempty"`
	ListMapKeys []string `json:"listMapKeys,omitempty"`
	MapType     string   `json:"mapType,omitempty"`
	Patch       string   `json:"patchStrategy,omitempty"`
	MergeKey    string   `json:"patchMergeKey,omitempty"`
	Enum        []string `json:"enum,omitempty"`
}

// Message is one Go struct or named list.
type Message struct {
	Fields  []Field `json:"fields"`
	MapType string  `json:"mapType,omitempty"`
	// TypeMeta says that the struct has apiVersion and kind.
	TypeMeta bool `json:"typeMeta,omitempty"`
	// List says that the JSON form is a plain list of strings.
	List bool `json:"list,omitempty"`
}

// Package is the content of one file.
type Package struct {
	Path     string              `json:"package"`
	Messages map[string]*Message `json:"messages"`
}

type collector struct {
	packages map[string]*Package
	markers  *markers
	seen     map[reflect.Type]bool
}

// opaque types have a JSON form of their own; their Go fields are not their JSON fields.
var opaque = map[string][]Field{
	"api/resource.Quantity":    {{Name: "string", Number: 1, Type: "string"}},
	"meta/v1.Time":             {{Name: "seconds", Number: 1, Type: "int64"}, {Name: "nanos", Number: 2, Type: "int32"}},
	"meta/v1.MicroTime":        {{Name: "seconds", Number: 1, Type: "int64"}, {Name: "nanos", Number: 2, Type: "int32"}},
	"meta/v1.Duration":         {{Name: "duration", Number: 1, Type: "int64"}},
	"pkg/runtime.RawExtension": {{Name: "raw", Number: 1, Type: "bytes"}},
	"pkg/runtime.Unknown": {
		{Name: "typeMeta", Number: 1, Type: "pkg/runtime.TypeMeta"}, {Name: "raw", Number: 2, Type: "bytes"},
		{Name: "contentEncoding", Number: 3, Type: "string"}, {Name: "contentType", Number: 4, Type: "string"},
	},
}

func messageName(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	return strings.Join(parts[len(parts)-2:], "/") + "." + t.Name()
}

func indirect(t reflect.Type) (reflect.Type, bool) {
	if t.Kind() == reflect.Pointer {
		return t.Elem(), true
	}
	return t, false
}

func isMessage(t reflect.Type) bool {
	if t.PkgPath() == "" {
		return false
	}
	return t.Kind() == reflect.Struct || isNamedList(t)
}

// isNamedList finds the named slices that have a protobuf message of their own.
func isNamedList(t reflect.Type) bool {
	switch t.Name() {
	case "ExtraValue", "Verbs", "AttestationValue":
		return t.Kind() == reflect.Slice
	}
	return false
}

func (c *collector) typeName(t reflect.Type) string {
	if isMessage(t) {
		c.visit(t)
		return messageName(t)
	}
	switch t.Kind() {
	case reflect.Slice:
		return "bytes"
	case reflect.Float64:
		return "double"
	case reflect.Int:
		return "int64"
	case reflect.Uint8, reflect.Uint32:
		return "uint32"
	case reflect.Interface:
		return "pkg/runtime.RawExtension"
	}
	return t.Kind().String()
}

func (c *collector) visit(t reflect.Type) {
	if c.seen[t] {
		return
	}
	c.seen[t] = true
	name := messageName(t)
	prefix, short, _ := strings.Cut(name, ".")
	if c.packages[prefix] == nil {
		c.packages[prefix] = &Package{Path: t.PkgPath(), Messages: map[string]*Message{}}
	}
	message := &Message{Fields: []Field{}}
	c.packages[prefix].Messages[short] = message
	if fields, ok := opaque[name]; ok {
		message.Fields = fields
		return
	}
	if t.Kind() == reflect.Slice {
		message.List = true
		message.Fields = []Field{{Name: "items", Number: 1, Type: "string", Repeated: true}}
		return
	}
	message.MapType = c.markers.structType(t)
	for i := range t.NumField() {
		message.TypeMeta = message.TypeMeta || isTypeMeta(t.Field(i))
		if field, ok := c.field(t, t.Field(i)); ok {
			message.Fields = append(message.Fields, field)
		}
	}
	if short == "FieldsV1" {
		message.Fields[0].Name = "Raw"
	}
}

func isTypeMeta(f reflect.StructField) bool {
	return f.Anonymous && f.Type.Name() == "TypeMeta"
}

func jsonTag(f reflect.StructField) (name string, omitempty bool, skip bool) {
	tag, ok := f.Tag.Lookup("json")
	name, options, _ := strings.Cut(tag, ",")
	return name, strings.Contains(options, "omitempty"), ok && name == "-"
}

func protobufNumber(f reflect.StructField) (int, string) {
	parts := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return 0, ""
	}
	number, err := strconv.Atoi(parts[1])
	if err != nil {
		panic(err)
	}
	for _, part := range parts {
		if name, ok := strings.CutPrefix(part, "name="); ok {
			return number, name
		}
	}
	return number, ""
}

func (c *collector) field(owner reflect.Type, f reflect.StructField) (Field, bool) {
	if isTypeMeta(f) {
		return Field{}, false
	}
	name, omitempty, skip := jsonTag(f)
	number, protoName := protobufNumber(f)
	inline := f.Anonymous && name == ""
	if skip && number == 0 {
		return Field{}, false
	}
	if name == "" || skip {
		name = protoName
	}
	t, pointer := indirect(f.Type)
	field := Field{Name: name, Number: number, Inline: inline, Pointer: pointer, OmitEmpty: omitempty}
	field.OmitZero = strings.Contains(f.Tag.Get("json"), ",omitzero")
	field.GoType = t.String()
	element := t
	switch {
	case isMessage(t):
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		field.Repeated = true
		element, _ = indirect(t.Elem())
	case t.Kind() == reflect.Map:
		field.Map = true
		element, _ = indirect(t.Elem())
	}
	field.Type = c.typeName(element)
	if field.GoType == field.Type {
		field.GoType = ""
	}
	field.Patch, field.MergeKey = f.Tag.Get("patchStrategy"), f.Tag.Get("patchMergeKey")
	c.markers.describe(owner, f, element, &field)
	return field, true
}

func (c *collector) write(folder string) error {
	for prefix, content := range c.packages {
		var out strings.Builder
		fmt.Fprintf(&out, "{\"package\":%q,\"messages\":{\n", content.Path)
		names := make([]string, 0, len(content.Messages))
		for name := range content.Messages {
			names = append(names, name)
		}
		sort.Strings(names)
		for i, name := range names {
			line, err := json.Marshal(content.Messages[name])
			if err != nil {
				return err
			}
			comma := ","
			if i == len(names)-1 {
				comma = ""
			}
			fmt.Fprintf(&out, "%q:%s%s\n", name, line, comma)
		}
		out.WriteString("}}\n")
		file := filepath.Join(folder, strings.ReplaceAll(prefix, "/", "_")+".json")
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	c := &collector{packages: map[string]*Package{}, markers: newMarkers(), seen: map[reflect.Type]bool{}}
	for _, root := range roots() {
		c.visit(root)
	}
	if err := c.write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
