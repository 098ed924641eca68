// Drivers of Go, each with its own inserts into the tables of shop.sql.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/jackc/pgx/v4"
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"
)

const big = 1 << 53 // snowflake ids are above this, numbers of a tag are not

func check(holds bool, claim string) {
	if !holds {
		fmt.Println("FAILED:", claim)
		os.Exit(1)
	}
	fmt.Println("ok:", claim)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func areNew(ids []int64, count int) bool {
	last := int64(big)
	for _, id := range ids {
		if id <= last {
			return false
		}
		last = id
	}
	return len(ids) == count
}

func main() {
	url := os.Getenv("DATABASE_URL")
	ctx := context.Background()

	fmt.Println("== pgx", os.Args[1])
	db, err := pgx.Connect(ctx, url)
	must(err)
	var ada, number int64
	must(db.QueryRow(ctx, "INSERT INTO customer (name) VALUES ($1) RETURNING id", "Ada").Scan(&ada))
	must(db.QueryRow(ctx, "INSERT INTO invoice (customer_id) VALUES ($1) RETURNING id", ada).Scan(&number))
	check(ada > big && number == 2, "QueryRow() with RETURNING; a number of a tag")
	batch := &pgx.Batch{}
	for n := 0; n < 1000; n++ {
		batch.Queue("INSERT INTO customer (name) VALUES ($1) RETURNING id", fmt.Sprint("row ", n))
	}
	results := db.SendBatch(ctx, batch)
	ids := make([]int64, 1000)
	for n := range ids {
		must(results.QueryRow().Scan(&ids[n]))
	}
	must(results.Close())
	check(areNew(ids, 1000), "SendBatch() of 1,000")
	rows := make([][]interface{}, 1000)
	for n := range rows {
		rows[n] = []interface{}{fmt.Sprint("copied ", n)}
	}
	copied, err := db.CopyFrom(ctx, pgx.Identifier{"customer"}, []string{"name"}, pgx.CopyFromRows(rows))
	must(err)
	check(copied == 1000, "CopyFrom() takes ids")

	fmt.Printf("== lib/pq %s and sqlx %s\n", os.Args[2], os.Args[3])
	pq := sqlx.MustConnect("postgres", url+"?sslmode=disable")
	must(pq.Select(&ids, "INSERT INTO customer (name) SELECT 'row ' || n FROM generate_series(1, $1) n RETURNING id", 1000))
	check(areNew(ids, 1000), "Select() of INSERT ... RETURNING of 1,000")
	result, err := pq.NamedExec("INSERT INTO customer (name) VALUES (:name)", map[string]interface{}{"name": "Ada"})
	must(err)
	_, err = result.LastInsertId()
	check(err != nil, "LastInsertId() is not supported (nor is it with serials): use RETURNING")

	text, err := json.Marshal(struct {
		ID int64 `json:"id,string"`
	}{ada})
	must(err)
	check(string(text) == fmt.Sprintf(`{"id":"%d"}`, ada), "the tag json:\"id,string\" writes it as a string, for browsers")
}
