// SPDX-License-Identifier: Apache-2.0
// AXI slave of the simulation: memory or devices of the harness, reached through DPI. It serves one read and one write at a
// time, as INCR bursts, and no atomic operations (axi_riscv_atomics in front of memory does them).
module sim_slave #(
  parameter bit  Devices = 1'b0,
  parameter type req_t   = logic,
  parameter type rsp_t   = logic,
  parameter type aw_t    = logic,
  parameter type ar_t    = logic
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  // Cycles from the address to the first word read, and from the last word written to the answer; at least 1.
  input  logic [15:0] read_latency_i,
  input  logic [15:0] write_latency_i,
  // While this is high, nothing is read.
  input  logic        hold_i,
  input  req_t        req_i,
  output rsp_t        rsp_o
);
  import "DPI-C" function longint unsigned trapless_memory_read(input longint unsigned address);
  import "DPI-C" function void trapless_memory_write(input longint unsigned address,
                                                     input longint unsigned data, input byte unsigned strobes);
  import "DPI-C" function longint unsigned trapless_device_read(input longint unsigned address,
                                                                input int unsigned size);
  import "DPI-C" function void trapless_device_write(input longint unsigned address,
                                                     input int unsigned size, input longint unsigned data);

  typedef enum logic [1:0] {Idle, Wait, Data, Answer} state_e;

  // -------------- reads --------------
  state_e      r_state_q;
  ar_t         ar_q;
  logic [15:0] r_wait_q;
  logic [63:0] r_data_q;
  logic        r_valid_q;

  function automatic logic [63:0] read(logic [63:0] address, logic [2:0] size);
    if (Devices) return trapless_device_read(address, 32'd1 << size) << (8 * address[2:0]);
    return trapless_memory_read({address[63:3], 3'b0});
  endfunction

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      r_state_q <= Idle;
      r_valid_q <= 1'b0;
      r_wait_q  <= '0;
    end else begin
      unique case (r_state_q)
        Idle: if (req_i.ar_valid) begin
          ar_q      <= req_i.ar;
          r_wait_q  <= read_latency_i;
          r_state_q <= Wait;
        end
        Wait: begin
          if (r_wait_q > 16'd1) begin
            r_wait_q <= r_wait_q - 16'd1;
          end else if (!hold_i) begin
            r_data_q  <= read(ar_q.addr, ar_q.size);
            r_valid_q <= 1'b1;
            r_state_q <= Data;
          end
        end
        default: if (req_i.r_ready) begin
          if (ar_q.len == 8'd0) begin
            r_valid_q <= 1'b0;
            r_state_q <= Idle;
          end else begin
            ar_q.len  <= ar_q.len - 8'd1;
            ar_q.addr <= ar_q.addr + (64'd1 << ar_q.size);
            if (hold_i) begin
              r_valid_q <= 1'b0;
              r_state_q <= Wait;
            end else begin
              r_data_q <= read(ar_q.addr + (64'd1 << ar_q.size), ar_q.size);
            end
          end
        end
      endcase
    end
  end

  // -------------- writes --------------
  state_e      w_state_q;
  aw_t         aw_q;
  logic [15:0] w_wait_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      w_state_q <= Idle;
      w_wait_q  <= '0;
    end else begin
      unique case (w_state_q)
        Idle: if (req_i.aw_valid) begin
          aw_q      <= req_i.aw;
          w_state_q <= Data;
        end
        Data: if (req_i.w_valid) begin
          if (Devices) begin
            trapless_device_write(aw_q.addr, 32'd1 << aw_q.size, req_i.w.data >> (8 * aw_q.addr[2:0]));
          end else begin
            trapless_memory_write({aw_q.addr[63:3], 3'b0}, req_i.w.data, req_i.w.strb);
          end
          aw_q.addr <= aw_q.addr + (64'd1 << aw_q.size);
          if (req_i.w.last) begin
            w_wait_q  <= write_latency_i;
            w_state_q <= write_latency_i <= 16'd1 ? Answer : Wait;
          end
        end
        Wait: begin
          w_wait_q <= w_wait_q - 16'd1;
          if (w_wait_q <= 16'd2) w_state_q <= Answer;
        end
        default: if (req_i.b_ready) w_state_q <= Idle;
      endcase
    end
  end

  always_comb begin
    rsp_o          = '0;
    rsp_o.ar_ready = r_state_q == Idle;
    rsp_o.r_valid  = r_valid_q;
    rsp_o.r.id     = ar_q.id;
    rsp_o.r.data   = r_data_q;
    rsp_o.r.last   = ar_q.len == 8'd0;
    rsp_o.aw_ready = w_state_q == Idle;
    rsp_o.w_ready  = w_state_q == Data;
    rsp_o.b_valid  = w_state_q == Answer;
    rsp_o.b.id     = aw_q.id;
  end
endmodule
